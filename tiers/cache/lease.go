package cache

import (
	"context"
	"fmt"
	"time"

	"kvbench/tiers"
	"kvbench/tiers/clock"
)

// Want is one key that a request is about to use.
type Want struct {
	Key   string
	Size  int64
	Write bool // the request will write the entry if it is absent
}

// Outcome is the decision on one key, taken on metadata alone.
type Outcome uint8

// Hit: resident, pinned until read. Pending: being written by another; reading
// waits. Miss: absent, and, if the intent said Write, ours to write. Kept, of
// blocks only: there, but behind a missing one, so that nobody reads it.
const (
	Hit Outcome = iota
	Pending
	Miss
	Kept
)

func (o Outcome) String() string { return [...]string{"hit", "pending", "miss", "kept"}[o] }

// Lease holds the decisions of one request, in the order of its intents. It is
// used by one goroutine and must be closed. A zero Lease may be used again
// after Close: its memory is kept.
type Lease struct {
	c       *Cache
	claims  []claim
	blocks  bool           // made by DecideBlocks
	planned int            // claims that were looked at for planning, of those
	way     path           // of all blocks together, until it is cleared
	asked   []Want         // to be looked up yet
	crowds  bool           // its blocks do not fit beside each other
	objects []tiers.Object // of a run, see ReadRun
}

type claim struct {
	e       *entry
	pinned  *replica
	outcome Outcome
	owner   bool   // ours to write
	using   bool   // counted in e.uses
	claimed *space // where bytes are claimed for it
	done    bool   // dropped for good
}

// Result is what one cache operation took.
type Result struct {
	Level    tiers.Kind
	Object   tiers.Object // the first, of a run
	Bytes    int64        // of all entries that the operation was for
	Again    int64        // of a read: those of entries that had been read before
	Timing   tiers.Timing
	First    bool          // the first read of this entry (of a run: of any) since it was written, or the counters were reset
	Slot     time.Duration // waiting for the write limit
	Space    time.Duration // waiting for room, deletions and demotions for it included
	Waited   time.Duration // waiting for another's write
	Complete bool          // false: cancelled or failed; chunks already moved were reported
}

// Decide decides all intents in one step. Keys must be distinct within one call.
func (c *Cache) Decide(l *Lease, intents []Want) {
	l.c, l.claims, l.blocks = c, l.claims[:0], false
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, in := range intents {
		cl := claim{outcome: Miss}
		e := c.index[in.Key]
		switch {
		case e == nil && in.Write:
			c.seq++
			e = &entry{key: in.Key, size: in.Size, seq: c.seq}
			c.index[in.Key] = e
			cl.e, cl.owner = e, true
		case e == nil:
		case e.cur == nil:
			cl.e, cl.outcome = e, Pending
		default:
			c.touch(e)
			cl.e, cl.outcome = e, Hit
			cl.pinned = pin(e)
		}
		l.claims = append(l.claims, cl)
	}
}

// Outcome returns the decision on intent i.
func (l *Lease) Outcome(i int) Outcome { return l.claims[i].outcome }

func pin(e *entry) *replica {
	e.cur.pins++
	return e.cur
}

// unpin lets go of a replica. It returns the replica when it has to be removed.
func (c *Cache) unpin(r *replica) *replica {
	r.pins--
	if r.doomed && r.pins == 0 {
		return r
	}
	return nil
}

// Drop lets go of intent i: nothing of it will be read any more.
func (l *Lease) Drop(ctx context.Context, i int, tag Tag) {
	l.claims[i].done = true
	l.release(ctx, i, tag)
	l.leave(i)
}

func (l *Lease) release(ctx context.Context, i int, tag Tag) {
	cl := &l.claims[i]
	if cl.pinned == nil {
		return
	}
	l.c.mu.Lock()
	r := l.c.unpin(cl.pinned)
	l.c.mu.Unlock()
	cl.pinned = nil
	if r != nil {
		_ = l.c.remove(context.WithoutCancel(ctx), tag, r)
	}
}

// Close lets go of everything. Entries that were ours to write and were not
// written are abandoned: their waiters find them gone.
func (l *Lease) Close(ctx context.Context, tag Tag) {
	l.forgo(ctx, tag)
	for i := range l.claims {
		l.release(ctx, i, tag)
		l.leave(i)
		cl := &l.claims[i]
		if cl.claimed != nil {
			l.c.unclaim(cl.claimed, cl.e.size)
		}
		if cl.owner {
			l.c.abandon(cl.e)
		}
		l.claims[i] = claim{}
	}
	l.claims = l.claims[:0]
}

// letGo releases all pins but those of claim i, because the lease is going to
// wait; holdAgain takes them again where the entry still exists.
func (l *Lease) letGo(ctx context.Context, except int, tag Tag) {
	for i := range l.claims {
		if i != except {
			l.release(ctx, i, tag)
		}
	}
}

func (l *Lease) holdAgain() {
	l.c.mu.Lock()
	defer l.c.mu.Unlock()
	for i := range l.claims {
		cl := &l.claims[i]
		if cl.done || cl.e == nil || cl.owner || cl.pinned != nil || cl.e.cur == nil || cl.e.state == evicted {
			continue
		}
		cl.pinned = pin(cl.e)
	}
}

// Wait makes sure that intent i, a hit or pending, is pinned. It returns how
// long it waited for the writer, and ErrGone if there is nothing to read.
func (l *Lease) Wait(ctx context.Context, i int, tag Tag) (time.Duration, error) {
	cl := &l.claims[i]
	if cl.pinned != nil {
		return 0, nil
	}
	if cl.e == nil || cl.owner {
		return 0, fmt.Errorf("reading a key that was decided as a miss: %w", ErrGone)
	}
	start := l.c.now()
	if ready := l.c.pending(cl.e); ready != nil {
		l.letGo(ctx, -1, tag)
		if err := ready.Wait(ctx); err != nil {
			return l.c.now() - start, err
		}
		l.holdAgain()
	}
	waited := l.c.now() - start
	l.c.mu.Lock()
	defer l.c.mu.Unlock()
	if cl.pinned == nil {
		if cl.e.cur == nil || cl.e.state == evicted {
			return waited, fmt.Errorf("%s: %w", cl.e.key, ErrGone)
		}
		cl.pinned = pin(cl.e)
	}
	return waited, nil
}

// pending returns the event to wait for while e is not written yet.
func (c *Cache) pending(e *entry) clock.Event {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e.cur != nil || e.state == evicted {
		return nil
	}
	if e.ready == nil {
		e.ready = c.clock.NewEvent()
	}
	return e.ready
}

// Read reads intent i once. It may be called again and again: the entry stays
// pinned until Drop or Close.
func (l *Lease) Read(ctx context.Context, i int, tag Tag) (Result, error) {
	cleared, err := l.makeRoom(ctx, tag)
	res := Result{Space: cleared}
	if err != nil {
		return res, err
	}
	res.Waited, err = l.Wait(ctx, i, tag)
	if err != nil {
		return res, err
	}
	return l.readOne(ctx, i, tag, res)
}

// readOne reads intent i, which is pinned.
func (l *Lease) readOne(ctx context.Context, i int, tag Tag, res Result) (Result, error) {
	c, cl := l.c, &l.claims[i]
	c.mu.Lock()
	left := c.hold(cl)
	r := cl.pinned
	c.saw(cl, &res)
	c.mu.Unlock()
	if left != nil {
		_ = c.remove(context.WithoutCancel(ctx), tag, left)
	}
	res.Level, res.Object = r.in.level, r.obj
	var err error
	res.Timing, err = c.readReplica(ctx, tag, r)
	res.Complete = err == nil
	return res, err
}

// Write writes intent i, which Decide gave to this lease as a Miss. On success
// the entry is readable by all and pinned by this lease.
func (l *Lease) Write(ctx context.Context, i int, tag Tag) (Result, error) {
	cl := &l.claims[i]
	if !cl.owner {
		return Result{}, fmt.Errorf("writing a key that belongs to another request: %w", ErrGone)
	}
	l.letGo(ctx, i, tag)
	cleared, err := l.makeRoom(ctx, tag)
	if err != nil {
		return Result{Space: cleared}, err
	}
	s := cl.claimed
	cl.claimed = nil
	res, r, err := l.c.write(ctx, tag, cl.e, s)
	res.Space += cleared
	cl.owner = false
	cl.pinned = r
	l.holdAgain()
	return res, err
}

// Owned says whether intent i is still ours to write.
func (l *Lease) Owned(i int) bool { return l.claims[i].owner }
