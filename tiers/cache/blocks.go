package cache

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"
)

// DecideBlocks decides the blocks of one request, given in order with distinct
// keys. The first of them that are there (or are being written) are hits, up to
// the first that is missing; behind it nothing is read: what is missing is ours
// to write, what is there is Kept. Blocks are touched last to first, so that the
// tails of prefixes are evicted first.
//
// The decision is final: recency is that of the decision, whenever the bytes
// move, and who has to leave is decided with it. So the hits are a function of
// the order of decisions and the capacities alone, not of the speed of the
// storage or of the number of workers. The price is that a decision may have to
// wait: when the least recent block of a tier is still in use, DecideBlocks
// returns false, and the caller calls Resume after another lease was closed,
// before it decides anything else about blocks. Only blocks that do not fit
// beside each other at all, with no other lease open, are left to find their
// room when they are written, and nothing else is decided meanwhile.
//
// While leases of DecideBlocks are open nothing else may write to the cache.
// blocks must not change before the decision.
func (c *Cache) DecideBlocks(l *Lease, blocks []Want) (decided bool) {
	l.c, l.claims, l.blocks, l.planned, l.asked = c, l.claims[:0], true, 0, blocks
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open++
	return l.decide()
}

// Resume goes on with a decision that had to wait.
func (l *Lease) Resume() (decided bool) {
	l.c.mu.Lock()
	defer l.c.mu.Unlock()
	return l.decide()
}

// decide looks the blocks up, once, and plans the ways of those to be written.
// Callers hold mu.
func (l *Lease) decide() bool {
	if l.asked != nil {
		if l.c.crowded {
			return false
		}
		l.lookUp(l.asked)
		l.asked = nil
	}
	return l.planBlocks()
}

func (l *Lease) lookUp(blocks []Want) {
	c, prefix := l.c, true
	for _, in := range blocks {
		cl := claim{e: c.index[in.Key]}
		switch {
		case cl.e == nil:
			cl.outcome, cl.owner, prefix = Miss, true, false
		case !prefix:
			cl.outcome = Kept
		case cl.e.cur == nil:
			cl.outcome = Pending
		default:
			cl.outcome = Hit
		}
		l.claims = append(l.claims, cl)
	}
	for i := len(blocks) - 1; i >= 0; i-- {
		cl := &l.claims[i]
		if cl.owner {
			cl.e = c.newBlock(blocks[i])
		} else {
			c.touch(cl.e)
		}
		if cl.outcome == Kept {
			cl.e, cl.done = nil, true
			continue
		}
		// No pin: a decision that waits would keep bytes from those it waits for. In use, a hit cannot be evicted; it is
		// pinned when it is read.
		cl.using = true
		cl.e.uses++
	}
}

// newBlock registers a block that is going to be written, as the most recent
// entry of the tier where it will live.
func (c *Cache) newBlock(in Want) *entry {
	c.seq++
	e := &entry{key: in.Key, size: in.Size, seq: c.seq}
	e.at = c.levels[c.home(0, in.Size)]
	e.at.lru.touched.insert(e)
	c.index[in.Key] = e
	return e
}

// planBlocks plans the ways of the blocks to be written, first to last. Callers
// hold mu.
func (l *Lease) planBlocks() bool {
	c := l.c
	for ; l.planned < len(l.claims); l.planned++ {
		cl := &l.claims[l.planned]
		if !cl.owner || cl.e.size > c.levels[len(c.levels)-1].capacity {
			continue
		}
		var p *path
		if len(c.tickets) == 0 {
			p = c.plan(cl.e.size, true)
		}
		if p == nil && c.open > 1 {
			return false
		}
		if p == nil {
			l.crowds, c.crowded = true, true
			continue
		}
		cl.claimed = p.target
		l.way.victims = append(l.way.victims, p.victims...)
		l.way.doomed = append(l.way.doomed, p.doomed...)
		l.way.sink = append(l.way.sink, p.sink...)
	}
	return true
}

// makeRoom does what the planned ways ask, before anything else of the request
// and before any wait for another: others count on the bytes that leave. First
// all deletions, then demotions from the lowest tier upward, so that what each
// of them waits for is on its way whoever it belongs to.
func (l *Lease) makeRoom(ctx context.Context, tag Tag) (took time.Duration, err error) {
	p := l.way
	if len(p.victims)+len(p.sink) == 0 {
		return 0, nil
	}
	l.way = path{}
	slices.SortStableFunc(p.sink, func(a, b sinking) int { return cmp.Compare(b.to.level, a.to.level) })
	start := l.c.now()
	err = l.c.clearPath(ctx, tag, &p)
	return l.c.now() - start, err
}

// leave ends the use of intent i, which may be a victim from then on.
func (l *Lease) leave(i int) {
	cl := &l.claims[i]
	if !cl.using {
		return
	}
	cl.using = false
	l.c.mu.Lock()
	defer l.c.mu.Unlock()
	cl.e.uses--
}

// forgo ends a lease of DecideBlocks. A way that was not cleared yet is cleared
// in the shortest manner: what was to sink is lost, because its room in the
// tier above is promised away.
func (l *Lease) forgo(ctx context.Context, tag Tag) {
	if !l.blocks {
		return
	}
	l.blocks, l.asked = false, nil
	ctx, cancel := context.WithCancelCause(ctx)
	cancel(errForgone)
	_, _ = l.makeRoom(ctx, tag)
	l.c.mu.Lock()
	defer l.c.mu.Unlock()
	l.c.open--
	if l.crowds {
		l.crowds, l.c.crowded = false, false
	}
}

var errForgone = errors.New("the block that needed the room will not be written")
