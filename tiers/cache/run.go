package cache

import (
	"context"

	"kvbench/tiers"
)

// A run is a part of a request's blocks that lie side by side in the files of one
// tier, so that one request to the tier moves them: as many as end within a chunk
// of the Transfer. Tiers whose layout has no runs move block by block, and so does
// everything where a Beginner wants to be told of each.
//
// A run is one operation: it has one Timing, takes one place of the write limit,
// and fails as a whole.

// ReadRun reads intent i, a hit or pending, and those behind it, with one request
// as far as they lie side by side. It waits for the writer of intent i, not for
// those of others. It returns how many intents it dealt with, also when it fails.
func (l *Lease) ReadRun(ctx context.Context, i int, tag Tag) (n int, res Result, err error) {
	c := l.c
	cleared, err := l.makeRoom(ctx, tag)
	res.Space = cleared
	if err != nil {
		return 1, res, err
	}
	if res.Waited, err = l.Wait(ctx, i, tag); err != nil {
		return 1, res, err
	}
	in, left := l.gather(i)
	for _, r := range left {
		_ = c.remove(context.WithoutCancel(ctx), tag, r)
	}
	if len(l.objects) == 1 {
		res, err = l.readOne(ctx, i, tag, res)
		return 1, res, err
	}
	res.Level, res.Object = in.level, l.objects[0]
	res.Timing, err = c.retry(ctx, tag, l.objects[0], in.level, tiers.Read, func() (tm tiers.Timing, err error) {
		n, tm, err = c.transfer.Read(ctx, in.tier, c.chunks(tag, in.level, tag.Phase), l.objects...)
		return tm, err
	})
	res.Complete = err == nil
	c.mu.Lock()
	for k := range n {
		c.saw(&l.claims[i+k], &res)
	}
	c.mu.Unlock()
	for k := n; k < len(l.objects); k++ {
		l.release(ctx, i+k, tag) // no pin stays over a wait, and the next run may have to
	}
	return n, res, err
}

// gather pins intent i and those behind it that a run may have, and puts them into
// l.objects. It returns the tier they are in and replicas to be removed.
func (l *Lease) gather(i int) (in *space, left []*replica) {
	c := l.c
	l.objects = l.objects[:0]
	bytes := int64(0)
	c.mu.Lock()
	defer c.mu.Unlock()
	for k := i; k < len(l.claims); k++ {
		cl := &l.claims[k]
		if k > i {
			if cl.done || cl.owner || cl.e == nil || cl.e.cur == nil || cl.e.state == evicted || cl.e.cur.in != in {
				break
			}
			if bytes += cl.e.cur.obj.Size; bytes > in.extent {
				break
			}
		}
		if r := c.hold(cl); r != nil {
			left = append(left, r)
		}
		l.objects = append(l.objects, cl.pinned.obj)
		if k == i {
			if in, bytes = cl.pinned.in, cl.pinned.obj.Size; in.extent == 0 {
				break
			}
		}
	}
	return in, left
}

// hold makes sure that the pin of a claim is on the entry's present replica. It
// returns an old one that has to be removed. Callers hold mu.
func (c *Cache) hold(cl *claim) (left *replica) {
	if cl.e.state == evicted {
		return nil
	}
	if cl.e.at == nil {
		c.touch(cl.e)
	}
	if cl.pinned == cl.e.cur {
		return nil
	}
	if cl.pinned != nil {
		// It sank since the last read. Staying with the old copy would keep
		// its space from the writer that made it sink.
		left = c.unpin(cl.pinned)
	}
	cl.pinned = pin(cl.e)
	return left
}

// saw notes that a claim's entry is read. Callers hold mu.
func (c *Cache) saw(cl *claim, res *Result) {
	res.Bytes += cl.pinned.obj.Size
	if cl.e.seen {
		res.Again += cl.pinned.obj.Size
	} else {
		res.First, cl.e.seen = true, true
	}
}

// WriteRun writes intent i, which DecideBlocks gave to this lease as a Miss, and
// those behind it that are ours too, with one request as far as the tier puts them
// side by side. It returns how many intents it dealt with, also when it fails; on
// success their blocks are readable by all and pinned by this lease.
func (l *Lease) WriteRun(ctx context.Context, i int, tag Tag) (n int, res Result, err error) {
	run := l.together(i)
	if run < 2 {
		res, err = l.Write(ctx, i, tag)
		return 1, res, err
	}
	l.letGo(ctx, -1, tag)
	cleared, err := l.makeRoom(ctx, tag)
	if err != nil {
		return 1, Result{Space: cleared}, err
	}
	n, res, err = l.c.writeRun(ctx, tag, l, i, run)
	res.Space += cleared
	l.holdAgain()
	return n, res, err
}

// together is how many intents from i on may be written in one run.
func (l *Lease) together(i int) (n int) {
	s := l.claims[i].claimed
	if s == nil || s.extent == 0 {
		return 0
	}
	bytes := int64(0)
	for _, cl := range l.claims[i:] {
		if !cl.owner || cl.claimed != s {
			break
		}
		if bytes += cl.e.size; bytes > s.extent {
			break
		}
		n++
	}
	return n
}

// writeRun is write for the claims of l from i on. All take their bytes at once;
// what the tier does not put into the first run claims them again.
func (c *Cache) writeRun(ctx context.Context, tag Tag, l *Lease, i, count int) (n int, res Result, err error) {
	claims := l.claims[i : i+count]
	s := claims[0].claimed
	total := int64(0)
	for k := range claims {
		total += claims[k].e.size
		claims[k].claimed = nil
	}
	giveUp := func(claims []claim) {
		for k := range claims {
			claims[k].owner = false
			c.abandon(claims[k].e)
		}
	}
	start := c.now()
	res.Level, res.Bytes = s.level, total
	if c.slots.bounded && !tag.Unbounded {
		if err = c.enter(ctx); err != nil {
			res.Slot = c.now() - start
			c.unclaim(s, total)
			giveUp(claims)
			return count, res, err
		}
		defer c.leave()
	}
	slotted := c.now()
	res.Slot = slotted - start
	err = c.take(ctx, s, total)
	res.Space = c.now() - slotted
	if err != nil {
		giveUp(claims)
		return count, res, err
	}

	l.objects = l.objects[:0]
	c.mu.Lock()
	for k := range claims {
		e := claims[k].e
		c.gen++
		l.objects = append(l.objects, tiers.Object{Key: e.key, Gen: c.gen, Size: e.size, Place: i + k})
		e.state = writing
	}
	c.mu.Unlock()
	res.Object = l.objects[0]
	res.Timing, err = c.retry(ctx, tag, l.objects[0], s.level, tiers.Write, func() (tm tiers.Timing, err error) {
		n, tm, err = c.transfer.Write(ctx, s.tier, c.chunks(tag, s.level, tag.Phase), l.objects...)
		return tm, err
	})
	res.Bytes = bytesOf(l.objects[:n])
	if n < count {
		c.mu.Lock()
		for k := n; k < count; k++ {
			claims[k].e.state = queued
			claims[k].claimed = s
		}
		c.mu.Unlock()
		c.ungrant(s, total-res.Bytes)
	}
	if err != nil {
		c.untake(s, res.Bytes)
		giveUp(claims[:n])
		return n, res, err
	}
	res.Complete = true

	c.mu.Lock()
	defer c.mu.Unlock()
	for k := range n {
		claims[k].pinned = c.publish(claims[k].e, l.objects[k], s)
		claims[k].owner = false
	}
	c.serve() // a new victim may be what a ticket waits for
	return n, res, nil
}

// bytesOf sums up the bytes of entries, without padding.
func bytesOf(objects []tiers.Object) (n int64) {
	for _, o := range objects {
		n += o.Size
	}
	return n
}
