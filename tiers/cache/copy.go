package cache

import (
	"context"

	"kvbench/tiers"
)

// target returns the level to which the policy copies or promotes an entry that a request has hit, or
// nil. It depends only on decisions, not on the progress of transfers.
func (c *Cache) target(e *Entry) *level {
	p := &c.policy
	switch {
	case e.in.last && p.Promote == OnHit:
		if up := c.levels[c.place(e, 0)]; !up.last {
			return up
		}
	case !e.in.last && p.Place == Selective && !e.hasLower() && int(e.asked) >= p.After:
		return c.last()
	}
	return nil
}

// intend plans the copy or promotion of an entry that the policy wants. to is nil if the policy wants
// none. ok is false, and nothing changes, if there is no capacity or if the entry is already moving.
func (c *Cache) intend(e *Entry, strict bool, work *[]move) (to *level, ok bool) {
	if to = c.target(e); to == nil {
		return nil, true
	}
	switch e.state {
	case evicted: // its writer failed
		return nil, true
	case resident:
	default:
		return to, false
	}
	e.state = moving // so that the plan does not choose it as a victim
	if !c.plan(e, targets{to}, strict, work) {
		e.state = resident
		return to, false
	}
	if to.last {
		c.beginCopy(e)
		return to, true
	}
	e.copied, e.in = e.cur, to
	to.order.Add(&e.upper)
	return to, true
}

// undo cancels a planned copy or promotion, whose bytes are no longer claimed.
func (c *Cache) undo(e *Entry, to *level) {
	if e.state == moving {
		e.state = resident
	}
	if to.last {
		e.copying = false
		to.order.Remove(&e.lower)
		return
	}
	e.copied = nil
	to.order.Remove(&e.upper)
	e.in = c.last()
}

// copyDone publishes a completed copy or promotion.
func (c *Cache) copyDone(e *Entry, o tiers.Object, to *level) {
	e.state = resident
	if to.last {
		e.copied, e.copying = to.newReplica(o), false
		c.moves.Copied.add(e.size)
		return
	}
	e.cur = to.newReplica(o)
	c.moves.Promoted.add(e.size)
}

// makeCopy writes an entry to a level that has claimed bytes for it. It generates the content instead of
// reading the entry. After a failure it undoes the copy.
func (c *Cache) makeCopy(ctx context.Context, tag Tag, e *Entry, o tiers.Object, to *level) error {
	from := e.cur.in.Kind
	// An older replica may still be read in that level: use another generation.
	c.mu.Lock()
	c.gen++
	o.Gen = c.gen
	c.mu.Unlock()
	err := c.filled(ctx, to, o.Size, nil, nil, func() error {
		tag.Phase = tiers.Evict
		_, tm, err := c.transferred(ctx, tag, tiers.Write, to, []tiers.Object{o})
		if err == nil {
			c.observer.Copied(tag, o, from, to.Kind, tm)
		}
		return err
	})
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil {
		c.copyDone(e, o, to)
	} else {
		c.undo(e, to)
		if to.last {
			c.moves.Unwritten.add(o.Size)
		}
	}
	c.serve()
	return err
}

// mostBehind is the number of write-behind goroutines: vLLM has as many threads for it.
const mostBehind = 16

// behind adds a copy to the write-behind queue, or drops the copy if the queue is full.
func (c *Cache) behind(tag Tag, e *Entry, o tiers.Object) {
	c.mu.Lock()
	defer c.mu.Unlock()
	b := &c.backlog
	if b.bytes+o.Size > c.policy.Behind || b.ctx.Err() != nil {
		c.last().releaseBytes(o.Size, 0)
		c.undo(e, c.last())
		c.moves.Unwritten.add(o.Size)
		c.serve()
		return
	}
	b.bytes += o.Size
	c.moves.MostBehind = max(c.moves.MostBehind, b.bytes)
	b.jobs = append(b.jobs, copyJob{tag, e, o})
	if b.writers < mostBehind {
		b.writers++
		c.clock.Go(c.writeBehind)
	}
}

// writeBehind writes queued copies until the queue is empty.
func (c *Cache) writeBehind() {
	c.mu.Lock()
	defer c.mu.Unlock()
	b := &c.backlog
	for len(b.jobs) > 0 {
		j := b.jobs[0]
		b.jobs = b.jobs[1:]
		c.mu.Unlock()
		_ = c.makeCopy(b.ctx, j.tag, j.e, j.o, c.last())
		c.mu.Lock()
		b.bytes -= j.o.Size
	}
	if b.writers--; b.writers == 0 && b.idle != nil {
		b.idle.Fire()
	}
}

// Close drops the copies in the queue and waits for the copies that are being written.
func (c *Cache) Close(ctx context.Context) error {
	c.mu.Lock()
	b := &c.backlog
	b.end()
	if b.writers == 0 {
		c.mu.Unlock()
		return nil
	}
	if b.idle == nil { // another Close may wait for the same writers
		b.idle = c.clock.NewEvent()
	}
	idle := b.idle
	c.mu.Unlock()
	return idle.Wait(ctx)
}
