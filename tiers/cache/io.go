package cache

import (
	"context"
	"errors"
	"syscall"

	"kvbench/tiers"
)

// retries is how often a transient failure is tried again (spec 12).
const retries = 3

// room reserves the path of a new entry and clears it: size bytes are claimed in s.
func (c *Cache) room(ctx context.Context, tag Tag, size int64) (s *space, err error) {
	p, err := c.reserve(ctx, size)
	if err != nil {
		return nil, err
	}
	if err = c.clearPath(ctx, tag, p); err != nil {
		c.unclaim(p.target, size)
	}
	return p.target, err
}

// write runs the whole life of one new entry: slot, path, deletions,
// demotions, bytes, publication. The published replica carries one pin, the
// caller's. A block whose way was planned and cleared comes with the tier in
// which its bytes are claimed, else s is nil.
func (c *Cache) write(ctx context.Context, tag Tag, e *entry, s *space) (res Result, r *replica, err error) {
	defer func() {
		if err != nil {
			c.abandon(e)
		}
	}()
	start := c.now()
	res.Level = c.levels[c.home(0, e.size)].level
	if c.slots.bounded && !tag.Unbounded {
		if err = c.enter(ctx); err != nil {
			res.Slot = c.now() - start
			if s != nil {
				c.unclaim(s, e.size)
			}
			return res, nil, err
		}
		defer c.leave()
	}
	slotted := c.now()
	res.Slot = slotted - start

	if s == nil {
		s, err = c.room(ctx, tag, e.size)
	}
	if err == nil {
		err = c.take(ctx, s, e.size)
	}
	res.Space = c.now() - slotted
	if err != nil {
		return res, nil, err
	}

	c.mu.Lock()
	c.gen++
	o := tiers.Object{Key: e.key, Gen: c.gen, Size: e.size}
	e.state = writing
	c.mu.Unlock()
	res.Level, res.Object, res.Bytes = s.level, o, o.Size
	res.Timing, err = c.writeObject(ctx, tag, s, o)
	if err != nil {
		c.untake(s, e.size)
		return res, nil, err
	}
	res.Complete = true

	c.mu.Lock()
	defer c.mu.Unlock()
	r = c.publish(e, o, s)
	c.serve() // a new victim may be what a ticket waits for
	return res, r, nil
}

// publish makes a written entry readable, with one pin. Callers hold mu.
func (c *Cache) publish(e *entry, o tiers.Object, s *space) *replica {
	e.state = resident
	e.cur = &replica{obj: o, in: s, pins: 1}
	s.reserved -= e.size
	s.entries++
	if e.at == nil {
		c.seq++
		e.seq = c.seq
		s.lru.touched.insert(e)
	}
	c.counters.Written[s.level]++
	c.counters.WrittenBytes[s.level] += e.size
	e.settled()
	return e.cur
}

// abandon ends a pending entry that will not be written.
func (c *Cache) abandon(e *entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e.state != queued && e.state != writing {
		return
	}
	e.state = evicted
	e.unlist()
	delete(c.index, e.key)
	e.settled()
}

// clearPath does what the path asks before bytes may move: deletions, then
// demotions from the lowest tier upward. Whatever happens, nothing of the path
// stays half done: an entry that could not sink is dropped from the cache.
func (c *Cache) clearPath(ctx context.Context, tag Tag, p *path) error {
	var first error
	for _, r := range p.victims {
		c.observer.Evicted(tag, r.obj, r.in.level)
	}
	for _, r := range p.doomed {
		// Deletion is not cancelled: others may already count on the bytes.
		if err := c.remove(context.WithoutCancel(ctx), tag, r); err != nil && first == nil {
			first = err
		}
	}
	for _, d := range p.sink {
		if first == nil {
			first = c.sink(ctx, tag, d)
			continue
		}
		c.unclaim(d.to, d.e.size)
		c.drop(ctx, tag, d)
	}
	return first
}

// sink demotes one entry: real I/O, a read of the upper and a write of the
// lower tier.
func (c *Cache) sink(ctx context.Context, tag Tag, d sinking) error {
	size := d.e.size
	if err := c.take(ctx, d.to, size); err != nil {
		c.drop(ctx, tag, d)
		return err
	}
	o, from, to := d.from.obj, d.from.in, d.to
	rd, wr, err := c.move(ctx, tag, o, from, to)
	if err != nil {
		c.untake(to, size)
		c.failed(ctx, tag, o, to.level, tiers.Write, err)
		c.drop(ctx, tag, d)
		return err
	}
	c.observer.Demoted(tag, o, from.level, to.level, rd, wr)
	c.mu.Lock()
	d.e.state = resident
	d.e.cur = &replica{obj: o, in: to}
	to.reserved -= size
	to.entries++
	if d.e.at == nil {
		to.lru.sunk.insert(d.e)
	}
	c.counters.Demoted[to.level]++
	c.counters.DemotedBytes[to.level] += size
	d.from.doomed = true // it is leaving since the path was planned
	from.entries--
	last := c.unpin(d.from)
	c.serve()
	c.mu.Unlock()
	if last != nil {
		return c.remove(context.WithoutCancel(ctx), tag, last)
	}
	return nil
}

// drop evicts an entry whose demotion did not happen. Putting it back could
// take away bytes that another writer was already promised.
func (c *Cache) drop(ctx context.Context, tag Tag, d sinking) {
	c.mu.Lock()
	d.e.unlist()
	delete(c.index, d.e.key)
	d.e.state = evicted
	d.from.doomed = true
	d.from.in.entries--
	c.counters.Dropped++
	last := c.unpin(d.from)
	c.mu.Unlock()
	if last != nil {
		_ = c.remove(context.WithoutCancel(ctx), tag, last)
	}
}

// remove deletes a doomed replica that nobody reads and frees its bytes, once
// the deletion has returned. A failed deletion frees them too: an entry that
// cannot be deleted is not in the cache any more, the failure is reported, and
// a tier whose deletions fail ends the run by its errors, not by a hang.
func (c *Cache) remove(ctx context.Context, tag Tag, r *replica) error {
	start := c.now()
	var err error
	if r.in.tier != nil {
		err = r.in.tier.Remove(ctx, r.obj)
	}
	took := c.now() - start
	if err == nil {
		c.observer.Deleted(tag, r.obj, r.in.level, took)
	} else {
		c.failed(ctx, tag, r.obj, r.in.level, tiers.Write, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		c.counters.DeleteErrors++
	}
	r.in.used -= r.obj.Size
	r.in.leaving -= r.obj.Size
	c.serve()
	return err
}

func (c *Cache) chunks(tag Tag, l tiers.Kind, phase tiers.Phase) tiers.ChunkFunc {
	return func(op tiers.Op, bytes int64) { c.observer.Chunk(tag, l, op, phase, bytes) }
}

// began tells who wants to know that bytes begin to move, and ends an operation
// of a level without a tier, where nothing takes time, by saying so.
func (c *Cache) began(tag Tag, o tiers.Object, s *space, op tiers.Op, phase tiers.Phase) (over bool) {
	if c.beginner != nil {
		c.beginner.Began(tag, o, s.level, op, phase)
	}
	if s.tier == nil {
		c.observer.Chunk(tag, s.level, op, phase, o.Size)
	}
	return s.tier == nil
}

// move copies the bytes of a demotion.
func (c *Cache) move(ctx context.Context, tag Tag, o tiers.Object, from, to *space) (rd, wr tiers.Timing, err error) {
	read, wrote := c.began(tag, o, from, tiers.Read, tiers.Evict), c.began(tag, o, to, tiers.Write, tiers.Evict)
	switch {
	case read && wrote:
		return rd, wr, nil
	case read: // of a tier without bytes: what it does not hold is made again
		_, wr, err = c.transfer.Write(ctx, to.tier, c.chunks(tag, to.level, tiers.Evict), o)
		return rd, wr, err
	case wrote:
		_, rd, err = c.transfer.Read(ctx, from.tier, c.chunks(tag, from.level, tiers.Evict), o)
		return rd, wr, err
	}
	return c.transfer.Move(ctx, from.tier, to.tier, o, c.chunks(tag, from.level, tiers.Evict), c.chunks(tag, to.level, tiers.Evict))
}

func (c *Cache) writeObject(ctx context.Context, tag Tag, s *space, o tiers.Object) (tiers.Timing, error) {
	if c.began(tag, o, s, tiers.Write, tag.Phase) {
		return tiers.Timing{}, nil
	}
	return c.retry(ctx, tag, o, s.level, tiers.Write, func() (tiers.Timing, error) {
		_, tm, err := c.transfer.Write(ctx, s.tier, c.chunks(tag, s.level, tag.Phase), o)
		return tm, err
	})
}

func (c *Cache) readReplica(ctx context.Context, tag Tag, r *replica) (tiers.Timing, error) {
	if c.began(tag, r.obj, r.in, tiers.Read, tag.Phase) {
		return tiers.Timing{}, nil
	}
	return c.retry(ctx, tag, r.obj, r.in.level, tiers.Read, func() (tiers.Timing, error) {
		_, tm, err := c.transfer.Read(ctx, r.in.tier, c.chunks(tag, r.in.level, tag.Phase), r.obj)
		return tm, err
	})
}

// retry runs f again after transient failures. The timing is that of the last
// attempt plus nothing: lost attempts are counted, not averaged in.
func (c *Cache) retry(ctx context.Context, tag Tag, o tiers.Object, l tiers.Kind, op tiers.Op, f func() (tiers.Timing, error)) (tiers.Timing, error) {
	for n := 0; ; n++ {
		t, err := f()
		if err == nil {
			return t, nil
		}
		if n < retries && Transient(err) && ctx.Err() == nil {
			c.observer.Retried(tag, o, l, op, err)
			continue
		}
		c.failed(ctx, tag, o, l, op, err)
		return t, err
	}
}

// failed reports err unless it is only the echo of a cancelled run.
func (c *Cache) failed(ctx context.Context, tag Tag, o tiers.Object, l tiers.Kind, op tiers.Op, err error) {
	if ctx.Err() != nil && (errors.Is(err, context.Cause(ctx)) || errors.Is(err, ctx.Err())) {
		return
	}
	c.observer.Failed(tag, o, l, op, err)
}

// Transient says whether an operation that failed so may succeed when it is
// simply tried again.
func Transient(err error) bool {
	for _, e := range []error{syscall.EINTR, syscall.EAGAIN, syscall.ETIMEDOUT, syscall.ENOBUFS} {
		if errors.Is(err, e) {
			return true
		}
	}
	var t interface{ Timeout() bool }
	return errors.As(err, &t) && t.Timeout() && !errors.Is(err, context.DeadlineExceeded)
}
