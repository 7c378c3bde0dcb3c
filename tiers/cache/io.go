package cache

import (
	"context"
	"fmt"

	"kvbench/tiers"
)

// Read reads want i, a hit or pending, and of blocks those behind it, in one transfer as far
// as they lie side by side in their tier. It waits for the writer of want i, not for those of
// others. It returns how many wants it dealt with, also when it fails. It may be called again
// and again: entries stay pinned until Drop or Close.
func (l *Lease) Read(ctx context.Context, i int, tag Tag) (n int, res Result, err error) {
	c := l.c
	if res.Space, err = l.makeRoom(ctx, tag); err != nil {
		return 1, res, err
	}
	if res.Waited, err = l.Wait(ctx, i, tag); err != nil {
		return 1, res, err
	}
	c.mu.Lock()
	in, left := l.gather(i)
	alone := len(l.objects) == 1
	if alone { // who reads it at the same time has not read it first
		res.saw(&l.claims[i])
	}
	c.mu.Unlock()
	for _, r := range left {
		_ = c.remove(ctx, tag, r)
	}
	res.Level = in.Kind
	n, res.Timing, err = c.read(ctx, tag, in, l.objects)
	if alone {
		return n, res, err
	}
	c.mu.Lock()
	for k := range n {
		res.saw(&l.claims[i+k])
	}
	c.mu.Unlock()
	for k := n; k < len(l.objects); k++ {
		l.release(ctx, i+k, tag) // no pin stays over a wait, and the next transfer may have to
	}
	return n, res, err
}

// gather pins want i and those behind it that one transfer may have, and puts them into
// l.objects. It returns the level they are in and replicas to be removed. Callers hold the lock.
func (l *Lease) gather(i int) (in *level, left []*replica) {
	l.objects = l.objects[:0]
	bytes := int64(0)
	for k := i; k < len(l.claims); k++ {
		cl := &l.claims[k]
		if k > i && (!l.Prefix || cl.done || cl.owner || !cl.e.readable() || cl.e.cur.in != in ||
			bytes+cl.e.size > in.extent) {
			break
		}
		if r := l.hold(cl); r != nil {
			left = append(left, r)
		}
		in = cl.pinned.in
		bytes += cl.pinned.obj.Size
		l.objects = append(l.objects, cl.pinned.obj)
	}
	return in, left
}

// hold makes sure that the pin of a claim is on the entry's present replica. It returns an old
// one that has to be removed. Callers hold the lock.
func (l *Lease) hold(cl *claim) (left *replica) {
	if cl.e.state == evicted {
		return nil
	}
	if !l.Prefix {
		l.c.touch(cl.e)
	}
	if cl.pinned == cl.e.cur {
		return nil
	}
	if cl.pinned != nil {
		// It was demoted since the last read. Staying with the old copy would keep its room from
		// the writer that demoted it.
		left = cl.pinned.unpin()
	}
	cl.pinned = cl.e.cur.pin()
	return left
}

// saw notes that a claim's entry is read. Callers hold the lock.
func (res *Result) saw(cl *claim) {
	res.Bytes += cl.pinned.obj.Size
	if cl.e.seen {
		res.Again += cl.pinned.obj.Size
	} else {
		res.First, cl.e.seen = true, true
	}
}

// Write writes want i, which Decide gave to this lease as a Miss, and of blocks those behind
// it that are this lease's too, in one transfer as far as their tier puts them side by side.
// It returns how many wants it dealt with, also when it fails; on success their entries are
// readable by all and pinned by this lease.
func (l *Lease) Write(ctx context.Context, i int, tag Tag) (n int, res Result, err error) {
	if !l.claims[i].owner {
		return 1, res, fmt.Errorf("writing a key that belongs to another request: %w", ErrGone)
	}
	l.letGo(ctx, tag)
	cleared, err := l.makeRoom(ctx, tag)
	if err != nil {
		return 1, Result{Space: cleared}, err
	}
	n, res, err = l.write(ctx, tag, i, l.together(i))
	res.Space += cleared
	l.holdAgain()
	return n, res, err
}

// together returns the claims from i on that one transfer may have.
func (l *Lease) together(i int) []claim {
	in, n, bytes := l.claims[i].claimed, i+1, l.claims[i].e.size
	for in != nil && n < len(l.claims) && l.claims[n].owner && l.claims[n].claimed == in {
		if bytes += l.claims[n].e.size; bytes > in.extent {
			break
		}
		n++
	}
	return l.claims[i:n]
}

// write runs the life of new entries: a place of the write limit, room, bytes, publication. For
// blocks whose room was planned the bytes are claimed already. All take their bytes at once;
// what the tier does not put side by side claims them again.
func (l *Lease) write(ctx context.Context, tag Tag, i int, claims []claim) (n int, res Result,
	err error) {
	c := l.c
	n = len(claims)
	in := claims[0].claimed
	for k := range claims {
		res.Bytes += claims[k].e.size
		claims[k].claimed = nil
	}
	res.Level = claims[0].e.in.Kind
	defer func() {
		if err != nil {
			c.giveUp(claims[:n])
		}
	}()
	begun := c.now()
	if c.bounded && !tag.Unbounded {
		err = c.enter(ctx)
		res.Slot = c.now() - begun
		if err != nil {
			if in != nil {
				c.giveBack(in, res.Bytes, 0)
			}
			return n, res, err
		}
		defer c.leave()
	}
	if in == nil {
		in, err = c.room(ctx, tag, claims[0].e)
	}
	if err == nil {
		err = c.take(ctx, in, res.Bytes)
	}
	res.Space = c.now() - begun - res.Slot
	if err != nil {
		return n, res, err
	}

	l.objects = l.objects[:0]
	c.mu.Lock()
	for k := range claims {
		e := claims[k].e
		c.gen++
		l.objects = append(l.objects, tiers.Object{Key: e.key, Gen: c.gen, Size: e.size,
			Place: i + k})
		e.state = writing
	}
	c.mu.Unlock()
	res.Level = in.Kind
	total := res.Bytes
	n, res.Timing, err = c.write(ctx, tag, in, l.objects)
	res.Bytes = bytesOf(l.objects[:n])
	if rest := claims[n:]; len(rest) > 0 {
		c.mu.Lock()
		for k := range rest {
			rest[k].e.state, rest[k].claimed = queued, in
		}
		c.mu.Unlock()
		c.giveBack(in, res.Bytes-total, total-res.Bytes) // a reservation becomes a claim again
	}
	if err != nil {
		c.giveBack(in, 0, res.Bytes)
		return n, res, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for k := range n {
		cl := &claims[k]
		if !l.Prefix {
			c.touch(cl.e)
		}
		cl.pinned, cl.owner = c.publish(cl.e, l.objects[k], in), false
	}
	c.serve() // a new victim may be what a plan waits for
	return n, res, nil
}

// bytesOf sums up the bytes of entries, without padding.
func bytesOf(objects []tiers.Object) (n int64) {
	for _, o := range objects {
		n += o.Size
	}
	return n
}

// giveUp ends claims whose entries will not be written.
func (c *Cache) giveUp(claims []claim) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for k := range claims {
		claims[k].owner = false
		c.abandon(claims[k].e)
	}
}

// publish makes a written entry readable, with one pin. Callers hold the lock.
func (c *Cache) publish(e *Entry, o tiers.Object, in *level) *replica {
	e.state = resident
	e.cur = &replica{obj: o, in: in, pins: 1}
	in.reserved -= e.size
	in.entries++
	e.resolve()
	return e.cur
}

// room plans and makes the room for a new entry: its bytes are claimed in the level.
func (c *Cache) room(ctx context.Context, tag Tag, e *Entry) (*level, error) {
	p, err := c.reserve(ctx, e)
	if err != nil {
		return nil, err
	}
	if err = c.execute(ctx, tag, p); err != nil {
		c.giveBack(p.target, e.size, 0)
	}
	return p.target, err
}

// execute does what a plan asks: deletions, then demotions from the lowest level upward.
// Whatever happens, nothing of it stays half done: an entry that could not be demoted is
// dropped from the cache.
func (c *Cache) execute(ctx context.Context, tag Tag, p *plan) error {
	var first error
	for _, r := range p.victims {
		c.observer.Evicted(tag, r.obj, r.in.Kind)
	}
	for _, r := range p.remove {
		if err := c.remove(ctx, tag, r); err != nil && first == nil {
			first = err
		}
	}
	for _, d := range p.demote {
		if first == nil {
			first = c.demote(ctx, tag, d)
			continue
		}
		c.giveBack(d.to, d.e.size, 0)
		c.drop(ctx, tag, d)
	}
	return first
}

// demote moves one entry: real I/O, a read of the upper and a write of the lower level.
func (c *Cache) demote(ctx context.Context, tag Tag, d demotion) error {
	o, from, to := d.from.obj, d.from.in, d.to
	if err := c.take(ctx, to, o.Size); err != nil {
		c.drop(ctx, tag, d)
		return err
	}
	rd, wr, err := c.move(ctx, tag, o, from, to)
	if err != nil {
		c.giveBack(to, 0, o.Size)
		c.failed(ctx, tag, o, to.Kind, tiers.Write, err)
		c.drop(ctx, tag, d)
		return err
	}
	c.observer.Demoted(tag, o, from.Kind, to.Kind, rd, wr)
	c.mu.Lock()
	d.e.state = resident
	d.e.cur = &replica{obj: o, in: to}
	to.reserved -= o.Size
	to.entries++
	return c.leaveBehind(ctx, tag, d.from)
}

// drop evicts an entry whose demotion did not happen. Putting it back could take away bytes
// that another writer was already promised.
func (c *Cache) drop(ctx context.Context, tag Tag, d demotion) {
	c.mu.Lock()
	c.forget(d.e)
	_ = c.leaveBehind(ctx, tag, d.from)
}

// leaveBehind lets go of the upper replica of a demotion, whose bytes count as leaving since it
// was planned. The caller holds the lock, which is let go of.
func (c *Cache) leaveBehind(ctx context.Context, tag Tag, r *replica) error {
	r.leaving = true
	r.in.entries--
	r = r.unpin()
	c.serve()
	c.mu.Unlock()
	if r == nil {
		return nil
	}
	return c.remove(ctx, tag, r)
}

// remove deletes a replica that nobody reads and frees its bytes, once the deletion has
// returned. It is not cancelled: others may already count on the bytes. A failed deletion
// frees them too: an entry that cannot be deleted is not in the cache any more, the failure is
// reported, and a tier whose deletions fail ends the run by its errors, not by a hang.
func (c *Cache) remove(ctx context.Context, tag Tag, r *replica) error {
	ctx = context.WithoutCancel(ctx)
	start := c.now()
	var err error
	if r.in.Tier != nil {
		err = r.in.Tier.Remove(ctx, r.obj)
	}
	if err == nil {
		c.observer.Deleted(tag, r.obj, r.in.Kind, c.now()-start)
	} else {
		c.failed(ctx, tag, r.obj, r.in.Kind, tiers.Write, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	r.in.used -= r.obj.Size
	r.in.leaving -= r.obj.Size
	c.serve()
	return err
}
