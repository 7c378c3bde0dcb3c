package cache

import (
	"context"

	"kvbench/tiers"
)

// wish is where the policy wants an entry, too, that a request has found: nil if nowhere. It
// depends on decisions alone, not on how far bytes have come.
func (c *Cache) wish(e *Entry) *level {
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

// intend plans that an entry's bytes go where the policy wants them, too. It says false, and
// changes nothing, where there is no room, or they are on their way elsewhere; where there is
// nothing to do, to is nil.
func (c *Cache) intend(e *Entry, strict bool, work *[]move) (to *level, ok bool) {
	if to = c.wish(e); to == nil {
		return nil, true
	}
	switch e.state {
	case evicted: // its writer failed
		return nil, true
	case resident:
	default:
		return to, false
	}
	if to.last {
		if ok = c.plan(e, aim{copy: to}, strict, work); ok {
			c.beginCopy(e)
			e.state = moving
		}
		return to, ok
	}
	e.state = moving // it is no victim of itself
	if ok = c.plan(e, aim{in: to}, strict, work); !ok {
		e.state = resident
		return to, false
	}
	e.copied, e.in = e.cur, to
	to.order.Add(&e.upper)
	return to, true
}

// undo gives up what was intended, with the bytes that are claimed or reserved for it.
func (c *Cache) undo(e *Entry, to *level, claimed, reserved int64) {
	to.giveBack(claimed, reserved)
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

// carried publishes an entry's bytes where they were intended to be, too.
func (c *Cache) carried(e *Entry, o tiers.Object, to *level) {
	r := &replica{obj: o, in: to}
	to.reserved -= e.size
	to.entries++
	e.state = resident
	if to.last {
		e.copied, e.copying = r, false
		c.moves.Copied.add(e.size)
		return
	}
	e.cur = r
	c.moves.Promoted.add(e.size)
}

// carry brings an entry's bytes to a level where they are claimed. They are made again rather than
// read: they are those of its object. Whatever fails changes nothing but that.
func (c *Cache) carry(ctx context.Context, tag Tag, e *Entry, o tiers.Object, to *level) error {
	claimed, from := o.Size, e.cur.in.Kind
	// Another replica of it may be leaving there, while somebody reads it: this one has other
	// bytes.
	c.mu.Lock()
	c.gen++
	o.Gen = c.gen
	c.mu.Unlock()
	err := c.await(ctx, &to.asks, waiter{in: to, bytes: o.Size})
	var tm tiers.Timing
	if err == nil {
		claimed = 0
		tag.Phase = tiers.Evict
		_, tm, err = c.transferred(ctx, tag, tiers.Write, to, []tiers.Object{o})
	}
	if err == nil {
		c.observer.Copied(tag, o, from, to.Kind, tm)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil {
		c.carried(e, o, to)
	} else {
		c.undo(e, to, claimed, o.Size-claimed)
		if to.last {
			c.moves.Unwritten.add(o.Size)
		}
	}
	c.serve()
	return err
}

// mostBehind is how many copies are written at a time behind the requests: the threads that vLLM
// has for it.
const mostBehind = 16

// behind leaves a copy to be written behind the requests, or gives it up where too many wait.
func (c *Cache) behind(tag Tag, e *Entry, o tiers.Object) {
	c.mu.Lock()
	defer c.mu.Unlock()
	b := &c.backlog
	if b.bytes+o.Size > c.policy.Behind || b.ctx.Err() != nil {
		c.undo(e, c.last(), o.Size, 0)
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

// writeBehind writes copies until none waits.
func (c *Cache) writeBehind() {
	c.mu.Lock()
	defer c.mu.Unlock()
	b := &c.backlog
	for len(b.jobs) > 0 {
		j := b.jobs[0]
		b.jobs = b.jobs[1:]
		c.mu.Unlock()
		_ = c.carry(b.ctx, j.tag, j.e, j.o, c.last())
		c.mu.Lock()
		b.bytes -= j.o.Size
	}
	if b.writers--; b.writers == 0 && b.idle != nil {
		b.idle.served.Fire()
	}
}

// Close gives up what waits behind the requests, and waits for what is being written.
func (c *Cache) Close(ctx context.Context) error {
	c.mu.Lock()
	b := &c.backlog
	b.end()
	if b.writers == 0 {
		c.mu.Unlock()
		return nil
	}
	b.idle = &waiter{served: c.clock.NewEvent()}
	c.mu.Unlock()
	return b.idle.served.Wait(ctx)
}
