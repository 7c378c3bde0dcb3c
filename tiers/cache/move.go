package cache

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"syscall"
	"time"

	"kvbench/tiers"
)

// A transient failure is retried up to 3 times, after 10, 20 and 40 ms. Failed attempts and pauses are
// not in the transfer's timing.
const (
	retries = 3
	backOff = 10 * time.Millisecond
)

// newCall returns the report of a call that moves bytes of a level in a phase.
func (c *Cache) newCall(tag Tag, in *level, phase tiers.Phase) *tiers.Call {
	return &tiers.Call{Observe: func(ch tiers.Chunk) { c.observer.Chunk(tag, in.Kind, phase, ch) }}
}

// tried runs try until it succeeds, or fails for good. try also returns the level and the operation that
// failed, for the report.
func (c *Cache) tried(ctx context.Context, tag Tag, o tiers.Object,
	try func() (tiers.Kind, tiers.Op, error)) error {
	for tries := 0; ; tries++ {
		l, op, err := try()
		if err == nil {
			return nil
		}
		if tries == retries || !Transient(err) || ctx.Err() != nil {
			c.failed(ctx, tag, o, l, op.String(), err)
			return err
		}
		c.observer.Retried(tag)
		if c.clock.Sleep(ctx, backOff<<tries) != nil {
			return err
		}
	}
}

// transferred reads or writes the first of objects, which are in one level, and returns how many the
// tier has moved. It retries transient failures. The timing is the timing of the last attempt.
func (c *Cache) transferred(ctx context.Context, tag Tag, op tiers.Op, in *level,
	objects []tiers.Object) (n int, tm tiers.Timing, err error) {
	c.observer.Began(tag, objects[0], in.Kind, op, tag.Phase)
	call := c.newCall(tag, in, tag.Phase)
	err = c.tried(ctx, tag, objects[0], func() (tiers.Kind, tiers.Op, error) {
		return in.Kind, op, c.once(ctx, call, op, in, objects)
	})
	return call.Done, call.Timing, err
}

// once reads or writes objects of a level, with generated content.
func (c *Cache) once(ctx context.Context, call *tiers.Call, op tiers.Op, in *level,
	objects []tiers.Object) error {
	return in.Move(ctx, c.clock.Now, op, call, objects, c.source, c.sink)
}

// failed reports err, unless the end of ctx is its cause.
func (c *Cache) failed(ctx context.Context, tag Tag, o tiers.Object, l tiers.Kind, what string,
	err error) {
	if !errors.Is(err, context.Cause(ctx)) && !errors.Is(err, ctx.Err()) {
		c.observer.Failed(tag, o, l, what, err)
	}
}

// Transient reports whether an operation with this error may succeed if it is retried.
func Transient(err error) bool {
	for _, e := range []error{syscall.EINTR, syscall.EAGAIN, syscall.ETIMEDOUT, syscall.ENOBUFS} {
		if errors.Is(err, e) {
			return true
		}
	}
	var t interface{ Timeout() bool }
	return errors.As(err, &t) && t.Timeout() && !errors.Is(err, context.DeadlineExceeded)
}

// freeCapacity executes the planned moves. A request calls it before any other work and before any wait,
// because other leases count on the bytes that leave. It makes all deletions first, then demotions from
// the lowest level upward, so that every demotion waits only for moves in progress. After a failure it
// still completes all moves. It adds its waits to room.
func (c *Cache) freeCapacity(ctx context.Context, tag Tag, planned *[]move, room *rooms) (
	took time.Duration, err error) {
	work := *planned
	if len(work) == 0 {
		return 0, nil
	}
	*planned = work[:0]
	start := c.clock.Now()
	slices.SortStableFunc(work, func(a, b move) int { return cmp.Compare(b.to, a.to) })
	for _, m := range work {
		if m.to < len(c.levels) {
			err = c.demote(ctx, tag, m, err, room)
			continue
		}
		if !m.drop {
			c.observer.Evicted(tag, m.from.obj, m.from.in.Kind)
		}
		if left := c.unpin(ctx, tag, m.from); err == nil {
			err = left
		}
	}
	clear(work) // keep no references to entries
	return c.clock.Now() - start, err
}

// demote moves one entry from its level to a lower level. It adds the wait for victims of the lower
// level to room. If err is not nil, or after a failure, it evicts the entry: another writer may
// already have claimed its bytes in the upper level.
func (c *Cache) demote(ctx context.Context, tag Tag, m move, err error, room *rooms) error {
	o, from, to := m.from.obj, m.from.in, c.levels[m.to]
	err = c.filled(ctx, to, o.Size, err, room, func() error { return c.copied(ctx, tag, o, from, to) })
	c.mu.Lock()
	switch {
	case err == nil:
		c.publish(m.e, o, to)
	case m.e.copied != nil:
		c.settle(m.e)
	default:
		c.forget(m.e)
	}
	m.from.leaving = true // its bytes count as leaving since the plan
	from.entries--
	c.serve()
	c.mu.Unlock()
	if left := c.unpin(ctx, tag, m.from); err == nil {
		err = left
	}
	return err
}

// filled reserves n claimed bytes of a level and calls write. After an error, or if err is not nil, the
// bytes are neither claimed nor reserved; the caller serves the waits. It adds its wait to room.
func (c *Cache) filled(ctx context.Context, to *level, n int64, err error, room *rooms,
	write func() error) error {
	claimed := n
	if err == nil {
		err = c.await(ctx, &to.claimers, waiter{in: to, bytes: n, room: room})
	}
	if err == nil {
		claimed = 0
		err = write()
	}
	if err != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		to.releaseBytes(claimed, n-claimed)
	}
	return err
}

// remove deletes a replica without pins and frees its bytes. It ignores the end of ctx, because other
// leases may count on the bytes. A failed deletion also frees the bytes: the entry is no longer in the
// cache, and the run must end by the reported errors, not by a hang.
func (c *Cache) remove(ctx context.Context, tag Tag, r *replica) error {
	ctx = context.WithoutCancel(ctx)
	start := c.clock.Now()
	var err error
	if r.in.Tier != nil {
		err = r.in.Tier.Remove(ctx, r.obj)
	}
	if err == nil {
		c.observer.Deleted(tag, r.obj, r.in.Kind, c.clock.Now()-start)
	} else {
		c.failed(ctx, tag, r.obj, r.in.Kind, "delete", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	r.in.used -= r.obj.Size
	r.in.leaving -= r.obj.Size
	c.serve()
	return err
}

// unpin removes a pin. The last unpin of a leaving replica removes the replica.
func (c *Cache) unpin(ctx context.Context, tag Tag, r *replica) error {
	c.mu.Lock()
	r.pins--
	last := r.leaving && r.pins == 0
	c.mu.Unlock()
	if !last {
		return nil
	}
	return c.remove(ctx, tag, r)
}
