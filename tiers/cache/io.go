package cache

import (
	"context"
	"errors"
	"fmt"
	"time"

	"kvbench/tiers"
	"kvbench/tiers/evict"
)

// Read reads want i, a Hit or Pending, and with Prefix also the following blocks that one transfer can
// read. It waits for the writer of want i, but not for writers of other wants. It returns the number of
// wants that it has processed, also after an error. It may be repeated: entries stay pinned until Drop
// or Close.
func (l *Lease) Read(ctx context.Context, i int, tag Tag) (n int, res Result, err error) {
	c := l.c
	planned := l.planMove(i)
	if planned {
		l.unpinAll(ctx, tag) // freeCapacity may wait for other leases
	}
	res.Space, err = c.freeCapacity(ctx, tag, &l.work, &res.Room)
	if planned {
		l.pinAgain()
	}
	if err != nil {
		return 1, res, err
	}
	if res.Waited, err = l.Wait(ctx, i, tag); err != nil {
		return 1, res, err
	}
	c.mu.Lock()
	in, left := l.gather(i)
	alone := len(l.objects) == 1
	if alone { // mark the entry now: a concurrent reader is not the first reader
		res.countRead(&l.claims[i], l.objects[0])
	}
	c.mu.Unlock()
	for _, r := range left {
		_ = c.unpin(ctx, tag, r)
	}
	res.Level = in.Kind
	n, res.Timing, err = c.transferred(ctx, tag, tiers.Read, in, l.objects)
	if alone {
		if err == nil {
			res.Copy, err = l.makeCopies(ctx, i, 1, tag)
		}
		return n, res, err
	}
	c.mu.Lock()
	for k := range n {
		res.countRead(&l.claims[i+k], l.objects[k])
	}
	c.mu.Unlock()
	for k := n; k < len(l.objects); k++ {
		l.release(ctx, i+k, tag) // hold no pin while the next transfer waits
	}
	if err == nil {
		res.Copy, err = l.makeCopies(ctx, i, n, tag)
	}
	return n, res, err
}

// planMove plans the copy or promotion of want i that the policy wants, without Prefix, if there is
// capacity now.
func (l *Lease) planMove(i int) (planned bool) {
	cl := &l.claims[i]
	if l.Prefix || cl.outcome != Hit || cl.also != nil || cl.done || len(l.c.levels) == 1 {
		return false
	}
	l.c.mu.Lock()
	defer l.c.mu.Unlock()
	if len(l.c.planning) > 0 {
		return false
	}
	if to, ok := l.c.intend(cl.e, false, &l.work); ok {
		cl.also = to
	}
	return cl.also != nil
}

// makeCopies makes the planned copies and promotions of n claims. It holds no pins while it waits. A
// failed copy is reported; it is an error of the request only if ctx has ended.
func (l *Lease) makeCopies(ctx context.Context, i, n int, tag Tag) (took time.Duration, err error) {
	c := l.c
	var begun time.Duration
	held := true
	for k := i; k < i+n; k++ {
		cl := &l.claims[k]
		if cl.also == nil {
			continue
		}
		to := cl.also
		cl.also = nil
		o := cl.e.cur.obj
		if to.last && c.policy.Behind > 0 {
			c.behind(tag, cl.e, o)
			continue
		}
		if held {
			begun, held = c.clock.Now(), false
			l.unpinAll(ctx, tag)
		}
		if failed := c.makeCopy(ctx, tag, cl.e, o, to); failed != nil && ctx.Err() != nil {
			err = failed
		}
	}
	if !held {
		l.pinAgain()
		took = c.clock.Now() - begun
	}
	return took, err
}

// gather pins want i and the following wants that one transfer can read, and sets l.objects to their
// objects. It returns their level and the replicas to unpin. If an entry was demoted since the last
// read, gather pins the replica in the new level: a pin on the old one would keep the bytes from the
// writer that needs them. Callers hold the lock.
func (l *Lease) gather(i int) (in *level, left []*replica) {
	l.objects = l.objects[:0]
	bytes := int64(0)
	for k := i; k < len(l.claims); k++ {
		cl := &l.claims[k]
		if k > i && (!l.Prefix || cl.done || cl.owner || !cl.e.readable() || cl.e.cur.in != in ||
			cl.e.size > in.extent-bytes) {
			break
		}
		if cl.e.state != evicted {
			if !l.Prefix {
				l.c.touch(cl.e)
			}
			if old := cl.pinned; old != cl.e.cur {
				cl.pinned = cl.e.cur.pin()
				if old != nil {
					left = append(left, old)
				}
			}
		}
		in = cl.pinned.in
		bytes += cl.pinned.obj.Size
		o := cl.pinned.obj
		if l.Prefix {
			o.Size = l.c.tails.Of(o.Size, l.hits-k)
		}
		l.objects = append(l.objects, o)
	}
	return in, left
}

// countRead counts o, an object of a claim's entry, as read. Callers hold the lock.
func (res *Result) countRead(cl *claim, o tiers.Object) {
	res.Bytes += o.Size
	if cl.e.seen {
		res.Again += o.Size
	} else {
		res.First, cl.e.seen = true, true
	}
}

// Write writes want i, a Miss that this lease owns, and with Prefix also the following owned blocks
// that one transfer can write. It returns the number of wants that it has processed, also after an
// error. After success all leases can read the entries, and this lease has pinned them.
//
// The steps are: wait for the write limit, claim capacity, write the bytes, publish. Blocks with
// planned capacity have claims already. Write reserves the bytes of all its blocks at once. If the tier
// did not write some blocks, Write turns their reservations back into claims.
func (l *Lease) Write(ctx context.Context, i int, tag Tag) (n int, res Result, err error) {
	c := l.c
	if !l.claims[i].owner {
		return 1, res, fmt.Errorf("writing a key that belongs to another request: %w", ErrGone)
	}
	l.unpinAll(ctx, tag)
	defer func() {
		for k := i; err != nil && k < i+n; k++ {
			l.Drop(ctx, k, tag) // these entries will not be written
		}
		l.pinAgain()
	}()
	n, res.Level = 1, l.claims[i].e.in.Kind
	if res.Space, err = c.freeCapacity(ctx, tag, &l.work, &res.Room); err != nil {
		return n, res, err
	}
	claims := l.together(i)
	n, res.Bytes = len(claims), bytesOf(l.objects)
	begun := c.clock.Now()
	if c.bounded && !tag.Unbounded {
		err = c.await(ctx, &c.writers, waiter{})
		res.Slot = c.clock.Now() - begun
		if err != nil {
			return n, res, err
		}
		defer c.leave()
	}
	err = l.claimCapacity(ctx, tag, &claims[0], &res.Room)
	in := claims[0].claimed
	if err == nil {
		err = c.await(ctx, &in.claimers, waiter{in: in, bytes: res.Bytes, room: &res.Room})
	}
	res.Space += c.clock.Now() - begun - res.Slot
	if err != nil {
		return n, res, err
	}

	n, err = l.written(ctx, i, claims, tag, &res)
	if err == nil {
		res.Copy, err = l.makeCopies(ctx, i, n, tag)
	}
	return n, res, err
}

// written writes claims from i on, whose capacity is reserved, and publishes their entries.
func (l *Lease) written(ctx context.Context, i int, claims []claim, tag Tag, res *Result) (n int,
	err error) {
	c, in := l.c, claims[0].claimed
	c.mu.Lock()
	for k := range claims {
		c.gen++
		l.objects[k].Gen = c.gen
		claims[k].claimed = nil
	}
	c.mu.Unlock()
	res.Level = in.Kind
	n, res.Timing, err = c.transferred(ctx, tag, tiers.Write, in, l.objects)
	all := res.Bytes
	res.Bytes = bytesOf(l.objects[:n])
	c.mu.Lock()
	defer c.mu.Unlock()
	for k := n; k < len(claims); k++ {
		claims[k].claimed = in
	}
	in.releaseBytes(res.Bytes-all, all-res.Bytes) // claim the unwritten bytes again
	if err != nil {
		in.releaseBytes(0, res.Bytes)
	}
	for k := 0; err == nil && k < n; k++ {
		cl := &claims[k]
		if !l.Prefix {
			c.touch(cl.e)
		}
		c.publish(cl.e, l.objects[k], in)
		cl.pinned, cl.owner = cl.e.cur.pin(), false
		if cl.also != nil {
			cl.e.state = moving
		}
	}
	c.serve() // a plan may wait for a new victim
	return n, err
}

// together returns the claims from i on that one transfer can write, and puts their objects into
// l.objects.
func (l *Lease) together(i int) []claim {
	in, n, bytes := l.claims[i].claimed, i, int64(0)
	l.objects = l.objects[:0]
	for ; n < len(l.claims); n++ {
		cl := &l.claims[n]
		if n > i && (in == nil || !cl.owner || cl.claimed != in || cl.e.size > in.extent-bytes) {
			break
		}
		bytes += cl.e.size
		l.objects = append(l.objects, tiers.Object{Key: cl.e.key, Size: cl.e.size})
	}
	return l.claims[i:n]
}

// bytesOf returns the sum of the objects' sizes, without padding.
func bytesOf(objects []tiers.Object) (n int64) {
	for _, o := range objects {
		n += o.Size
	}
	return n
}

// claimCapacity claims the bytes of an entry in its level, unless they are claimed already. It adds its
// waits to room.
func (l *Lease) claimCapacity(ctx context.Context, tag Tag, cl *claim, room *rooms) error {
	if cl.claimed != nil {
		return nil
	}
	err := l.c.fits(cl.e.size)
	if err == nil {
		err = l.c.await(ctx, &l.c.planning,
			waiter{e: cl.e, to: l.c.targetsOf(cl.e), work: &l.work, room: room})
	}
	if err != nil {
		return err
	}
	l.setClaimed(cl)
	_, err = l.c.freeCapacity(ctx, tag, &l.work, room)
	return err
}

// Objects returns the objects of a level that are resident, in the order of eviction.
func (c *Cache) Objects(kind tiers.Kind) (objects []tiers.Object) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, l := range c.levels {
		if l.Kind != kind {
			continue
		}
		l.order.Victims(func(it *evict.Item) bool {
			if e := it.Entry.(*Entry); e.state == resident {
				objects = append(objects, e.replicaIn(l).obj)
			}
			return true
		})
	}
	return objects
}

// Forget deletes an entry that is not in use. It does not count as an eviction. An absent entry is no
// error.
func (c *Cache) Forget(ctx context.Context, tag Tag, key string) error {
	c.mu.Lock()
	e := c.index[key]
	if e == nil {
		c.mu.Unlock()
		return nil
	}
	if e.busy() || e.cur.pins > 0 {
		defer c.mu.Unlock()
		return fmt.Errorf("deleting %s from the cache: it is in use (%s)", key, e.state)
	}
	left := []*replica{e.cur.pin()}
	if e.copied != nil {
		left = append(left, e.copied.pin())
	}
	c.evict(e)
	c.mu.Unlock()
	var errs []error
	for _, r := range left {
		errs = append(errs, c.unpin(ctx, tag, r))
	}
	return errors.Join(errs...)
}
