package cache

import (
	"context"
	"errors"
	"fmt"
	"time"

	"kvbench/tiers"
)

// Want is one key that a request is about to use.
type Want struct {
	Key   string
	Size  int64
	Write bool // the request will write the entry if it is absent; of blocks all are
}

// Outcome is the decision on one key, taken on metadata alone.
type Outcome uint8

// Hit: there to be read. Pending: being written by another; reading waits. Miss: absent, and,
// if the want said Write, this lease's to write. Unreachable, with Prefix only: there, but
// behind a missing block, so that nobody reads it.
const (
	Hit Outcome = iota
	Pending
	Miss
	Unreachable
)

func (o Outcome) String() string {
	return [...]string{"hit", "pending", "miss", "unreachable"}[o]
}

// Lease holds the decisions of one request, in the order of its wants. It is used by one
// goroutine and must be closed. A zero Lease may be used again after Close: its memory is kept.
type Lease struct {
	// Prefix, set before Decide, says that the wants are the blocks of one prefix, in order.
	// See Cache.Decide.
	Prefix bool

	c       *Cache
	open    bool // counted in Cache.open: with Prefix, from Decide to Close
	claims  []claim
	hits    int            // with Prefix: the first claims that are there, or being written
	work    []move         // planned and not done yet
	objects []tiers.Object // of one transfer
}

type claim struct {
	e       *Entry
	pinned  *replica
	outcome Outcome
	owner   bool   // this lease's to write
	claimed *level // where bytes are claimed for it
	// where bytes are claimed, too, for a copy or a promotion of it that this lease carries out
	also *level
	done bool // dropped; until then e.uses counts it, with Prefix
}

// Result is what one cache operation took.
type Result struct {
	Level  tiers.Kind
	Bytes  int64 // of all entries that the operation was for
	Again  int64 // of a read: those of entries that had been read before
	Timing tiers.Timing
	First  bool          // of one of the entries, since it was written or ResetGauges
	Slot   time.Duration // waiting for the write limit
	Space  time.Duration // waiting for room, deletions and demotions for it included
	// Cleared is the part of Space in which others were deleted and demoted, not waited for.
	Cleared time.Duration
	Waited  time.Duration // waiting for another's write
	Copy    time.Duration // copying and promoting, the wait for their room included
}

// Decide decides all wants, whose keys are distinct, in one step. It returns false when it has
// to wait: then the caller calls it again, with the same wants, after another lease was closed,
// and before anything else is decided.
//
// Without Prefix it never waits. What is there is pinned until it is read; what has to leave
// for an entry, and when, is found out when that is written.
//
// With Prefix the first blocks that are there (or are being written) are hits, up to the first
// that is missing; behind it nothing is read: what is missing is this lease's to write, what is
// there is Unreachable. Blocks are touched last to first, so that the tails of prefixes are
// evicted first. The decision is final: recency is that of the decision, whenever the bytes
// move, and who has to leave is decided with it. So the hits are a function of the order of
// decisions and the capacities alone, not of the speed of the storage or of the number of
// workers. The price is that a decision may have to wait, when the first victim of a level is
// still in use. Only blocks that do not fit beside each other at all, with no other lease open,
// are left to find their room when they are written, and nothing else is decided meanwhile.
// While leases with Prefix are open nothing else may write to the cache.
func (c *Cache) Decide(l *Lease, wants []Want) (decided bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	l.c = c
	if len(l.claims) == 0 {
		if l.Prefix {
			if c.oversubscribed {
				return false
			}
			l.open = true
			c.open++
		}
		l.lookUp(wants)
	}
	return !l.Prefix || l.planRoom()
}

// lookUp decides on metadata. Callers hold the lock.
func (l *Lease) lookUp(wants []Want) {
	c, reachable := l.c, true
	l.hits = 0
	for _, w := range wants {
		cl := claim{e: c.index[w.Key]}
		switch {
		case cl.e == nil:
			cl.outcome, cl.owner = Miss, w.Write || l.Prefix
			reachable = !l.Prefix
		case !reachable:
			cl.outcome = Unreachable
		case cl.e.cur == nil:
			cl.outcome = Pending
		}
		l.claims = append(l.claims, cl)
		if reachable {
			l.hits++
		}
	}
	for k := range wants {
		i := k
		if l.Prefix {
			i = len(wants) - 1 - k
		}
		cl := &l.claims[i]
		switch {
		case cl.owner:
			cl.e = c.add(wants[i].Key, wants[i].Size)
		case cl.e != nil:
			cl.e.asked++
			c.touch(cl.e)
		}
		switch {
		case cl.outcome == Unreachable:
			cl.e, cl.done = nil, true
		case l.Prefix:
			// No pin: a decision that waits would keep bytes from those it waits for. In use, a hit
			// cannot be evicted; it is pinned when it is read.
			cl.e.uses++
		case cl.outcome == Hit:
			cl.pinned = cl.e.cur.pin()
		}
	}
}

// planRoom plans the room of the blocks to be written, first to last; when it comes again it goes
// on with those that have none. Callers hold the lock.
func (l *Lease) planRoom() bool {
	c := l.c
	for i := range l.claims {
		cl := &l.claims[i]
		if (cl.outcome == Hit || cl.outcome == Pending) && cl.also == nil && !cl.done {
			also, ok := c.intend(cl.e, true, &l.work)
			switch {
			case ok:
				cl.also = also
			case c.open > 1:
				return false
			} // else its blocks are in the way, and it stays where it is
			continue
		}
		if !cl.owner || cl.claimed != nil || c.fits(cl.e.size) != nil {
			continue
		}
		switch {
		case len(c.planning) == 0 && c.plan(cl.e, c.aims(cl.e), true, &l.work):
			l.hasRoom(cl)
		case c.open > 1:
			return false
		default:
			c.oversubscribed = true
		}
	}
	return true
}

// aims is where a new entry goes.
func (c *Cache) aims(e *Entry) aim {
	if e.copying {
		return aim{in: e.in, copy: c.last()}
	}
	return aim{in: e.in}
}

// hasRoom notes that the bytes of a new entry are claimed.
func (l *Lease) hasRoom(cl *claim) {
	cl.claimed = cl.e.in
	if cl.e.copying {
		cl.also = l.c.last()
	}
}

// Outcome returns the decision on want i.
func (l *Lease) Outcome(i int) Outcome { return l.claims[i].outcome }

// Found says where the entry of want i lies and what it is there, ok false where it is not there
// yet, or not any more.
func (l *Lease) Found(i int) (o tiers.Object, in tiers.Kind, ok bool) {
	l.c.mu.Lock()
	defer l.c.mu.Unlock()
	e := l.claims[i].e
	if e == nil || !e.readable() || e.cur == nil {
		return o, in, false
	}
	return e.cur.obj, e.cur.in.Kind, true
}

// Owned says whether want i is still this lease's to write.
func (l *Lease) Owned(i int) bool { return l.claims[i].owner }

// Drop lets go of want i: nothing of it will be read any more. An entry that was to be written and
// was not is abandoned: its waiters find it gone.
func (l *Lease) Drop(ctx context.Context, i int, tag Tag) {
	c, cl := l.c, &l.claims[i]
	l.release(ctx, i, tag)
	dropped := cl.done
	cl.done = true
	if dropped || !l.Prefix && !cl.owner && cl.claimed == nil && cl.also == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if l.Prefix {
		cl.e.uses-- // it may be a victim from now on
	}
	freed := cl.claimed != nil || cl.also != nil
	if cl.claimed != nil {
		cl.claimed.giveBack(cl.e.size, 0)
	}
	if cl.also != nil {
		c.undo(cl.e, cl.also, cl.e.size, 0)
	}
	if cl.owner {
		c.forget(cl.e)
		cl.e.resolve()
	}
	cl.owner, cl.claimed, cl.also = false, nil, nil
	if freed {
		c.serve()
	}
}

var errUnneeded = errors.New("the block that needed the room will not be written")

// Close drops everything. What was planned and not done yet is done in the shortest manner: what
// was to be demoted is lost, because its room in the level above is promised away.
func (l *Lease) Close(ctx context.Context, tag Tag) {
	if len(l.work) > 0 {
		cut, cancel := context.WithCancelCause(ctx)
		cancel(errUnneeded)
		_, _ = l.c.makeRoom(cut, tag, &l.work, new(Result))
	}
	for i := range l.claims {
		l.Drop(ctx, i, tag)
	}
	clear(l.claims)
	l.claims = l.claims[:0]
	if !l.open {
		return
	}
	l.c.mu.Lock()
	defer l.c.mu.Unlock()
	l.open = false
	if l.c.open--; l.c.open == 0 {
		l.c.oversubscribed = false // that was it: meanwhile nothing else was decided
	}
}

// release unpins claim i.
func (l *Lease) release(ctx context.Context, i int, tag Tag) {
	if r := l.claims[i].pinned; r != nil {
		l.claims[i].pinned = nil
		_ = l.c.unpin(ctx, tag, r)
	}
}

// letGo releases all pins, because the lease is going to wait; holdAgain takes them again
// where the entry still exists.
func (l *Lease) letGo(ctx context.Context, tag Tag) {
	for i := range l.claims {
		l.release(ctx, i, tag)
	}
}

func (l *Lease) holdAgain() {
	l.c.mu.Lock()
	defer l.c.mu.Unlock()
	for i := range l.claims {
		cl := &l.claims[i]
		if !cl.done && !cl.owner && cl.pinned == nil && cl.e.readable() {
			cl.pinned = cl.e.cur.pin()
		}
	}
}

// Wait makes sure that want i, a hit or pending, is pinned. It returns how long it waited for
// the writer, and ErrGone if there is nothing to read.
func (l *Lease) Wait(ctx context.Context, i int, tag Tag) (waited time.Duration, err error) {
	c, cl := l.c, &l.claims[i]
	if cl.pinned != nil {
		return 0, nil
	}
	if cl.e == nil || cl.owner {
		return 0, fmt.Errorf("reading a key that was decided as a miss: %w", ErrGone)
	}
	c.mu.Lock()
	if cl.e.cur == nil && cl.e.state != evicted {
		if cl.e.ready == nil {
			cl.e.ready = c.clock.NewEvent()
		}
		ready, start := cl.e.ready, c.clock.Now()
		c.mu.Unlock()
		l.letGo(ctx, tag)
		err = ready.Wait(ctx)
		if waited = c.clock.Now() - start; err != nil {
			return waited, err
		}
		l.holdAgain()
		c.mu.Lock()
	}
	defer c.mu.Unlock()
	if cl.pinned == nil {
		if !cl.e.readable() {
			return waited, fmt.Errorf("%s: %w", cl.e.key, ErrGone)
		}
		cl.pinned = cl.e.cur.pin()
	}
	return waited, nil
}
