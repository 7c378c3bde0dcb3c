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
	Write bool // the request writes the entry if it is absent; implied for blocks
}

// Outcome is the decision on one key. It depends only on metadata.
type Outcome uint8

// Hit: the entry can be read. Pending: another lease is writing the entry; a read waits. Miss: the
// entry is absent; with Want.Write this lease writes it. Unreachable (only with Prefix): the entry
// exists, but after a missing block, so the request does not read it.
const (
	Hit Outcome = iota
	Pending
	Miss
	Unreachable
)

// Lease has the decisions of one request, in the order of its wants. One goroutine uses it and must
// close it. A closed Lease can be reused and keeps its memory.
type Lease struct {
	// Prefix means that the wants are the blocks of one prefix, in order: see Cache.Decide. Set it
	// before Decide.
	Prefix bool

	c       *Cache
	open    bool // counted in Cache.open: with Prefix, from Decide to Close
	claims  []claim
	hits    int            // with Prefix: the number of hits and pending blocks
	work    []move         // planned and not done yet
	objects []tiers.Object // of one transfer
}

type claim struct {
	e       *Entry
	pinned  *replica
	outcome Outcome
	owner   bool   // this lease writes it
	claimed *level // the level in which its bytes are claimed
	// also is the level in which bytes are claimed for a copy or a promotion by this lease.
	also *level
	done bool // dropped; until then e.uses counts it, with Prefix
}

// Result is the time and the bytes of one cache operation.
type Result struct {
	Level  tiers.Kind
	Bytes  int64 // of all entries of the operation
	Again  int64 // of a read: bytes of entries that had been read before
	Timing tiers.Timing
	First  bool          // first read of one of the entries since its write or ResetGauges
	Slot   time.Duration // wait for the write limit
	Space  time.Duration // wait for capacity, including deletions and demotions for it
	// Room is the part of Space in which the operation waited for the capacity of each tier, until
	// victims there were no longer read or written. In the rest it deleted and demoted victims.
	Room   rooms
	Waited time.Duration // wait for another lease's write
	Copy   time.Duration // copies and promotions, including the wait for their capacity
}

// Decide decides all wants of a lease in one step. Their keys are distinct. If it returns false, the
// caller calls it again with the same wants, after another lease was closed and before any other
// decision.
//
// Without Prefix it never returns false. It pins existing entries until they are read. The victims for
// a new entry are chosen when the entry is written.
//
// With Prefix the blocks up to the first missing one are Hit or Pending. The request reads nothing
// after that block: this lease writes the missing blocks, and later existing blocks are Unreachable.
// Decide touches the blocks last to first, so that the tails of prefixes are evicted first. A decision
// is final: it includes recency and victims, whenever the bytes move. So the hits depend only on the
// order of decisions and the capacities, not on the speed of the storage or the number of workers. The
// price is that a decision waits if the first victim of a level is in use. If the blocks of one request
// do not all fit at once and no other lease is open, the lease is oversubscribed: it finds their
// capacity when it writes them, and until it closes, no other decision is made. While leases with
// Prefix are open, no other lease may write to the cache.
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
	return !l.Prefix || l.planCapacity()
}

// lookUp decides the outcomes and touches the entries. Callers hold the lock.
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
			// Do not pin: a decision that waits could hold bytes that other leases need. uses protects
			// the entry from eviction.
			cl.e.uses++
		case cl.outcome == Hit:
			cl.pinned = cl.e.cur.pin()
		}
	}
}

// planCapacity plans the capacity for the blocks to be written, first to last. A repeated call continues
// with the blocks that have no capacity. Callers hold the lock.
func (l *Lease) planCapacity() bool {
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
			} // otherwise this lease's own blocks prevent the move: the entry stays in its level
			continue
		}
		if !cl.owner || cl.claimed != nil || c.fits(cl.e.size) != nil {
			continue
		}
		switch {
		case len(c.planning) == 0 && c.plan(cl.e, c.targetsOf(cl.e), true, &l.work):
			l.setClaimed(cl)
		case c.open > 1:
			return false
		default:
			c.oversubscribed = true
		}
	}
	return true
}

// targetsOf returns the levels that get bytes of a new entry.
func (c *Cache) targetsOf(e *Entry) targets {
	if e.copying {
		return targets{e.in, c.last()}
	}
	return targets{e.in}
}

// setClaimed marks the bytes of a new entry as claimed.
func (l *Lease) setClaimed(cl *claim) {
	cl.claimed = cl.e.in
	if cl.e.copying {
		cl.also = l.c.last()
	}
}

// Outcome returns the decision on want i.
func (l *Lease) Outcome(i int) Outcome { return l.claims[i].outcome }

// Found returns the object of want i and its level. ok is false if the entry is not written yet or was
// evicted.
func (l *Lease) Found(i int) (o tiers.Object, in tiers.Kind, ok bool) {
	l.c.mu.Lock()
	defer l.c.mu.Unlock()
	e := l.claims[i].e
	if !e.readable() {
		return o, in, false
	}
	return e.cur.obj, e.cur.in.Kind, true
}

// Owned reports whether this lease still has to write want i.
func (l *Lease) Owned(i int) bool { return l.claims[i].owner }

// Drop releases want i. The lease does not read it any more. If the lease should have written the entry
// and has not, leases that wait for the entry get ErrGone.
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
		cl.e.uses-- // it may be a victim now
	}
	freed := cl.claimed != nil || cl.also != nil
	if cl.claimed != nil {
		cl.claimed.releaseBytes(cl.e.size, 0)
	}
	if cl.also != nil {
		cl.also.releaseBytes(cl.e.size, 0)
		c.undo(cl.e, cl.also)
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

var errUnneeded = errors.New("the block that needed the capacity will not be written")

// Close drops all wants. It completes planned moves without I/O of demotions: it evicts the victims,
// because their capacity in the upper level is already claimed.
func (l *Lease) Close(ctx context.Context, tag Tag) {
	if len(l.work) > 0 {
		cut, cancel := context.WithCancelCause(ctx)
		cancel(errUnneeded)
		_, _ = l.c.freeCapacity(cut, tag, &l.work, new(rooms))
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
		l.c.oversubscribed = false // this was the oversubscribed lease: no other was open
	}
}

// release unpins claim i.
func (l *Lease) release(ctx context.Context, i int, tag Tag) {
	if r := l.claims[i].pinned; r != nil {
		l.claims[i].pinned = nil
		_ = l.c.unpin(ctx, tag, r)
	}
}

// unpinAll releases all pins before the lease waits. pinAgain pins the entries that still exist.
func (l *Lease) unpinAll(ctx context.Context, tag Tag) {
	for i := range l.claims {
		l.release(ctx, i, tag)
	}
}

func (l *Lease) pinAgain() {
	l.c.mu.Lock()
	defer l.c.mu.Unlock()
	for i := range l.claims {
		cl := &l.claims[i]
		if !cl.done && !cl.owner && cl.pinned == nil && cl.e.readable() {
			cl.pinned = cl.e.cur.pin()
		}
	}
}

// Wait pins want i, a Hit or Pending. It returns the wait for the writer, and ErrGone if the entry no
// longer exists.
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
		l.unpinAll(ctx, tag)
		err = ready.Wait(ctx)
		if waited = c.clock.Now() - start; err != nil {
			return waited, err
		}
		l.pinAgain()
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
