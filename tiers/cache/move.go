package cache

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"syscall"
	"time"

	"kvbench/tiers"
	"kvbench/tiers/transfer"
)

// How often a transient failure is tried again, and after which time: the second time
// after twice of it, and so on. What is lost so is part of the request's rest.
const (
	retries = 3
	backOff = 10 * time.Millisecond
)

func (c *Cache) chunks(tag Tag, in *level, phase tiers.Phase) tiers.ChunkFunc {
	return func(ch tiers.Chunk) { c.observer.Chunk(tag, in.Kind, phase, ch) }
}

// transferred reads or writes the first of objects, which lie in one level, and says how many that
// were. A level without a tier takes no time and cannot fail. Transient failures are tried again;
// the timing that counts is that of the last attempt: lost ones are counted, not averaged in.
func (c *Cache) transferred(ctx context.Context, tag Tag, op tiers.Op, in *level,
	objects []tiers.Object) (n int, tm tiers.Timing, err error) {
	c.observer.Began(tag, objects[0], in.Kind, op, tag.Phase)
	carry := c.transfer.Read
	if op == tiers.Write {
		carry = c.transfer.Write
	}
	told := c.chunks(tag, in, tag.Phase)
	for tries := 0; ; tries++ {
		n, tm, err = carry(ctx, in.Tier, told, objects...)
		if err == nil || !c.again(ctx, tag, objects[0], in.Kind, op, tries, err) {
			return n, tm, err
		}
	}
}

// again says whether an operation that failed is to be tried another time, when the time for that
// has come. If not its failure is reported.
func (c *Cache) again(ctx context.Context, tag Tag, o tiers.Object, l tiers.Kind, op tiers.Op,
	tries int, err error) bool {
	if tries == retries || !Transient(err) || ctx.Err() != nil {
		c.failed(ctx, tag, o, l, op.String(), err)
		return false
	}
	c.observer.Retried(tag, o, l, op, err)
	return c.clock.Sleep(ctx, backOff<<tries) == nil
}

// move copies the bytes of a demotion.
func (c *Cache) move(ctx context.Context, tag Tag, o tiers.Object, from, to *level) error {
	c.observer.Began(tag, o, from.Kind, tiers.Read, tiers.Evict)
	c.observer.Began(tag, o, to.Kind, tiers.Write, tiers.Evict)
	for tries := 0; ; tries++ {
		rd, wr, err := c.transfer.Move(ctx, from.Tier, to.Tier, o,
			c.chunks(tag, from, tiers.Evict), c.chunks(tag, to, tiers.Evict))
		if err == nil {
			c.observer.Demoted(tag, o, from.Kind, to.Kind, rd, wr)
			return nil
		}
		l, op := to, tiers.Write
		if e, ok := errors.AsType[*transfer.SourceError](err); ok {
			l, op, err = from, tiers.Read, e.Err
		}
		if !c.again(ctx, tag, o, l.Kind, op, tries, err) {
			return err
		}
	}
}

// failed reports err unless it is only the echo of a cancelled run.
func (c *Cache) failed(ctx context.Context, tag Tag, o tiers.Object, l tiers.Kind, what string,
	err error) {
	if !errors.Is(err, context.Cause(ctx)) && !errors.Is(err, ctx.Err()) {
		c.observer.Failed(tag, o, l, what, err)
	}
}

// Transient says whether an operation that failed so may succeed when it is simply tried again.
func Transient(err error) bool {
	for _, e := range []error{syscall.EINTR, syscall.EAGAIN, syscall.ETIMEDOUT, syscall.ENOBUFS} {
		if errors.Is(err, e) {
			return true
		}
	}
	var t interface{ Timeout() bool }
	return errors.As(err, &t) && t.Timeout() && !errors.Is(err, context.DeadlineExceeded)
}

// makeRoom does what was planned, before anything else of the request and before any wait for
// another: others count on the bytes that leave. First all deletions, then demotions from the
// lowest level upward, so that what each of them waits for is on its way whoever it belongs to.
// Whatever happens, nothing of it stays half done. Of the time that it took it adds to res what was
// work.
func (c *Cache) makeRoom(ctx context.Context, tag Tag, planned *[]move, res *Result) (
	took time.Duration, err error) {
	work := *planned
	if len(work) == 0 {
		return 0, nil
	}
	*planned = work[:0]
	start, waited := c.clock.Now(), time.Duration(0)
	slices.SortStableFunc(work, func(a, b move) int { return cmp.Compare(b.to, a.to) })
	for _, m := range work {
		if m.to < len(c.levels) {
			err = c.demote(ctx, tag, m, err, &waited)
			continue
		}
		if !m.drop {
			c.observer.Evicted(tag, m.from.obj, m.from.in.Kind)
		}
		if left := c.unpin(ctx, tag, m.from); err == nil {
			err = left
		}
	}
	clear(work) // no entry lives longer for that
	took = c.clock.Now() - start
	res.Cleared += took - waited
	return took, err
}

// demote moves one entry: real I/O, a read of the upper and a write of the lower level. It adds to
// waited how long it had to wait for the bytes of those that leave the lower one. After a
// failure, also an earlier one, the entry is dropped from the cache: putting it back could take
// away bytes that another writer was already promised.
func (c *Cache) demote(ctx context.Context, tag Tag, m move, err error, waited *time.Duration,
) error {
	o, from, to := m.from.obj, m.from.in, c.levels[m.to]
	claimed := o.Size
	if err == nil {
		start := c.clock.Now()
		err = c.await(ctx, &to.asks, waiter{in: to, bytes: o.Size})
		*waited += c.clock.Now() - start
	}
	if err == nil {
		claimed = 0
		err = c.move(ctx, tag, o, from, to)
	}
	c.mu.Lock()
	if err == nil {
		c.publish(m.e, o, to)
	} else {
		to.giveBack(claimed, o.Size-claimed)
		if m.e.copied != nil {
			c.settle(m.e)
		} else {
			c.forget(m.e)
		}
	}
	m.from.leaving = true // its bytes count as leaving since that was planned
	from.entries--
	c.serve()
	c.mu.Unlock()
	if left := c.unpin(ctx, tag, m.from); err == nil {
		err = left
	}
	return err
}

// remove deletes a replica that nobody reads and frees its bytes, once the deletion has
// returned. It is not cancelled: others may already count on the bytes. A failed deletion
// frees them too: an entry that cannot be deleted is not in the cache any more, the failure is
// reported, and a tier whose deletions fail ends the run by its errors, not by a hang.
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

// unpin lets go of a replica, and removes one that leaves when nobody else holds it.
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
