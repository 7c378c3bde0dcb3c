package cache

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"kvbench/tiers"
	"kvbench/tiers/clock"
	"kvbench/tiers/evict"
)

// level is one tier with its account of bytes. Guarded by the cache's lock.
//
// plan finds capacity for a new entry in all levels in one step: it chooses the victims of each level
// and claims the bytes that the next level needs for them. Claims become reservations, which are part of
// used, in FIFO order, as soon as the bytes are free. Bytes become free after a deletion, and when a
// demotion has removed the old replica. At every moment
//
//	used                     <= limit     capacity is never exceeded
//	used - leaving + claimed <= limit     every claim can be met when the victims have left
//
// Used is exactly the sum of the replicas in the tier and the reservations. One entry that is alone may
// exceed limit, see largest.
type level struct {
	Level
	index int // in Cache.levels
	last  bool
	limit int64 // Capacity × Keep
	// largest is the size of the largest entry that may enter: Capacity × Largest. An entry above limit
	// enters when everything else has left.
	largest int64
	extent  int64 // largest number of bytes of adjacent objects that move together, 0 = none
	order   evict.Order
	groups  evict.Grouper // order if its victims leave in groups, else nil

	used     int64 // bytes of replicas, including leaving ones, and of reservations
	reserved int64 // the part of used that has no replica yet
	leaving  int64 // the part of used that is being demoted or evicted
	claimed  int64 // bytes claimed by writers, not yet part of used
	peak     int64
	entries  int64 // entries whose current replica is here
	claimers queue // claims that wait to become reservations
}

func (c *Cache) newLevel(i int, cfg Level, last bool) *level {
	l := &level{Level: cfg, index: i, last: last, limit: cfg.Capacity, largest: cfg.Capacity}
	if keep := cmp.Or(c.policy.Keep, KeepRatio); !last {
		l.limit = int64(float64(cfg.Capacity) * keep)
		l.largest = int64(float64(cfg.Capacity) * cmp.Or(c.policy.Largest, keep))
	}
	l.order = c.policy.Evict(l.limit)
	l.groups, _ = l.order.(evict.Grouper)
	if l.Tier != nil {
		traits := l.Tier.Traits()
		l.extent = traits.Extent
		if traits.Layers > 1 { // all blocks of a request move together, layer by layer
			l.extent = math.MaxInt64
		}
	}
	return l
}

// releaseBytes releases claimed bytes, and reserved bytes that did not become a replica.
func (l *level) releaseBytes(claimed, reserved int64) {
	l.claimed -= claimed
	l.used -= reserved
	l.reserved -= reserved
}

// grant turns a claim of n bytes into a reservation, if the bytes are free.
func (l *level) grant(n int64) bool {
	if l.used > 0 && l.used+n > l.limit {
		return false
	}
	l.claimed -= n
	l.used += n
	l.reserved += n
	l.peak = max(l.peak, l.used)
	return true
}

// move is the planned demotion or deletion of a victim. It must complete before the bytes of a new
// entry can be written. The lease that executes it holds a pin on from.
type move struct {
	e    *Entry
	at   int // index of the level that the victim leaves
	from *replica
	to   int  // index of the next level; len(Cache.levels): the bytes are deleted
	drop bool // the bytes are deleted, and the entry has a replica in another level
}

// targets has the levels that are going to hold an entry: one, or the entry's and the copy's. The rest is nil.
type targets [2]*level

// place returns the index of the first level, from i on, that may hold an entry. The last level may hold any
// entry.
func (c *Cache) place(e *Entry, i int) int {
	for ; i < len(c.levels)-1; i++ {
		if e.size <= c.levels[i].largest {
			break
		}
	}
	return i
}

// search is the state of plan. It is kept between calls to save allocations. Guarded by the cache's
// lock.
type search struct {
	strict bool
	victim *evict.Item // the last chosen victim
	at     int         // index of the level being searched
	short  int64       // bytes that are still missing in that level
	need   []int64     // bytes to be claimed, by level; after the last level: evicted bytes
	moves  []move      // the victims, upper levels first
}

// plan finds capacity for an entry in its target levels and commits the plan. It marks the victims,
// appends them to work, and claims the bytes of the victims in lower levels and of e in its target
// levels. It returns false, and changes only lacking, if the entries that can leave a level have too few bytes.
//
// A strict plan takes only the first victims of an order, and fails if one is busy. Other plans skip
// entries that cannot leave now.
func (c *Cache) plan(e *Entry, to targets, strict bool, work *[]move) bool {
	s := &c.search
	s.strict, s.moves = strict, s.moves[:0]
	clear(s.need)
	for _, l := range to {
		if l != nil {
			s.need[l.index] += e.size
		}
	}
	for s.at = 0; s.at < len(c.levels); s.at++ {
		l := c.levels[s.at]
		// The victims of the level above may not fit even if this level is empty, for example if the cpu tier is
		// larger than the storage. Then the first of them skip this level.
		for k := 0; k < len(s.moves) && s.need[s.at] > l.limit; k++ {
			if m := &s.moves[k]; m.to == s.at {
				m.to, m.drop = c.below(m.e, s.at+1)
				s.need[s.at] -= m.e.size
				s.need[m.to] += m.e.size
			}
		}
		if s.need[s.at] == 0 {
			continue
		}
		s.short = l.used - l.leaving + l.claimed + s.need[s.at] - max(l.limit, s.need[s.at])
		if s.short > 0 {
			s.victim = nil
			l.order.Victims(c.consider)
		}
		if s.short > 0 {
			c.lacking = l.Kind
			return false
		}
	}
	for i, l := range c.levels {
		l.claimed += s.need[i]
	}
	// Lower levels first: an entry can only be dropped if its copy below stays. The sort is stable, so that
	// victims reach the next level in the order in which they were chosen.
	slices.SortStableFunc(s.moves, func(a, b move) int { return b.at - a.at })
	for _, m := range s.moves {
		c.commitMove(&m)
		*work = append(*work, m)
	}
	return true
}

// Lacking returns the tier whose capacity was too small for the last plan or decision that failed.
func (c *Cache) Lacking() tiers.Kind {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lacking
}

// commitMove removes a victim from the order of its level and pins the replica that leaves.
func (c *Cache) commitMove(m *move) {
	e := m.e
	switch {
	case m.drop && c.levels[m.at].last:
		m.from = e.copied.pin()
		c.dropCopy(e)
		c.moves.Dropped.add(e.size)
	case m.drop && e.copied != nil:
		m.from = e.cur.pin()
		e.cur.leave()
		c.settle(e)
		c.moves.Dropped.add(e.size)
	case m.to == len(c.levels):
		m.drop = false // the same plan has dropped the copy in the last level
		if !c.levels[m.at].last {
			c.moves.Refused.add(e.size)
		}
		m.from = e.cur.pin()
		c.evict(e)
	default:
		m.from = e.cur.pin()
		c.beginDemotion(e, c.levels[m.to])
	}
}

// choose adds an entry to the victims, if it can leave, and reports whether more victims are needed.
func (c *Cache) choose(it *evict.Item) (more bool) {
	s, v := &c.search, it.Entry.(*Entry)
	l, gone := c.levels[s.at], len(c.levels)
	if s.short <= 0 && !l.groups.Together(s.victim, it) {
		return false // there are enough bytes, and it is not in the group of the last victim
	}
	if s.strict && v.busy() {
		s.short = max(1, s.short) // the plan fails: a busy entry keeps its whole group
		return false
	}
	if v.state != resident {
		return true
	}
	m := move{e: v, at: s.at, to: gone}
	if m.drop = l.last && v.in != l; !l.last {
		m.to, m.drop = c.below(v, s.at+1)
	}
	s.need[m.to] += v.size
	s.moves = append(s.moves, m)
	s.short -= v.size
	s.victim = it
	return s.short > 0 || l.groups != nil
}

// below returns the index of the level, from i on, to which a victim of a higher level goes. It is
// len(Cache.levels) if the victim would go to the last level, and that level has a copy of it (drop) or
// does not admit it.
func (c *Cache) below(e *Entry, i int) (to int, drop bool) {
	gone := len(c.levels)
	to = c.place(e, i)
	if to >= gone-1 && (e.copied != nil || !c.admits(e)) {
		return gone, e.copied != nil
	}
	return to, false
}

// admits reports whether the last level accepts a victim from the level above.
func (c *Cache) admits(e *Entry) bool {
	switch c.policy.Place {
	case WriteThrough, Selective:
		return false // the policy has copied the entry to the last level already, or keeps it out
	}
	return int(e.asked) >= c.policy.After
}

// beginDemotion assigns an entry to a lower level. Its bytes follow.
func (c *Cache) beginDemotion(e *Entry, to *level) {
	e.state = moving
	e.in.leaving += e.size
	e.in.order.Remove(e.item(e.in))
	e.in = to
	e.in.order.Add(e.item(to))
}

// leave releases a writer's slot of the write limit and admits the next writer.
func (c *Cache) leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.places++
	c.serveQueue(&c.writers)
}

// queue is a FIFO queue of waiters. Guarded by the cache's lock.
type queue []*waiter

// waiter is one wait. If e is set, it waits for a plan of capacity. If in is set, it waits for free bytes
// of a level, which turn a claim into a reservation. Otherwise it waits for the write limit. It is a struct
// and not a function, so that the common case of no wait allocates nothing.
type waiter struct {
	e      *Entry
	to     targets
	work   *[]move // of the plan
	in     *level
	bytes  int64
	room   *rooms // the time of the wait is added here, by the tier waited for; may be nil
	served clock.Event
}

// rooms are the waits for the capacity of each tier.
type rooms = [tiers.NumKinds]time.Duration

// serves completes a wait if its condition holds, and reports whether it has. Callers hold the lock.
func (c *Cache) serves(w *waiter) bool {
	switch {
	case w.e != nil:
		return c.plan(w.e, w.to, false, w.work)
	case w.in != nil:
		return w.in.grant(w.bytes)
	case c.places == 0:
		return false
	}
	c.places--
	return true
}

// serveQueue completes the waits at the head of a queue, in FIFO order, up to the first that cannot
// complete.
func (c *Cache) serveQueue(q *queue) {
	for len(*q) > 0 && c.serves((*q)[0]) {
		(*q)[0].served.Fire()
		*q = (*q)[1:]
	}
}

// await waits in a FIFO queue until the condition of want holds, and then its plan, reservation or slot of the
// write limit is made. After an error nothing has changed. Callers do not hold the lock.
func (c *Cache) await(ctx context.Context, q *queue, want waiter) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(*q) == 0 && c.serves(&want) {
		return nil
	}
	w := new(waiter)
	*w = want
	w.served = c.clock.NewEvent()
	*q = append(*q, w)
	lacking, begun := c.lacking, c.clock.Now()
	if w.in != nil {
		lacking = w.in.Kind
	}
	c.mu.Unlock()
	err := w.served.Wait(ctx)
	if w.room != nil {
		w.room[lacking] += c.clock.Now() - begun
	}
	c.mu.Lock()
	if err == nil || w.served.Fired() { // ctx may end at the same time
		return nil
	}
	*q = slices.DeleteFunc(*q, func(x *waiter) bool { return x == w })
	c.serve() // waits after it in the queue may complete now
	return err
}

// serve completes all waits that can complete. Callers hold the lock, and call it after every change
// that can free bytes or add a victim.
func (c *Cache) serve() {
	for _, l := range c.levels {
		c.serveQueue(&l.claimers)
	}
	c.serveQueue(&c.planning)
}
