package cache

import (
	"cmp"
	"context"
	"math"
	"slices"

	"kvbench/tiers/clock"
	"kvbench/tiers/evict"
)

// level is one tier with the account of its bytes. Guarded by the cache's lock.
//
// Room is granted in one step for the whole way of a new entry: at each level the entries that
// have to leave are chosen and the bytes needed are claimed against them. Claims become
// reservations (used) in the order in which they are asked for, as soon as the bytes are
// really free: a deletion has returned, a demoted copy is gone. At every moment
//
//	used                     <= limit     capacity is never exceeded
//	used - leaving + claimed <= limit     every claim can be met once what leaves has left
//
// and used is exactly the sum of the replicas in the tier plus reservations.
type level struct {
	Level
	index  int // in Cache.levels
	last   bool
	limit  int64 // Keep of the capacity
	extent int64 // bytes of neighbours that move together, 0 = none
	order  evict.Order
	groups evict.Grouper // the order, where victims leave together

	used     int64 // replicas (also those that leave, until they are deleted) + reservations
	reserved int64 // the part of used that has no replica yet
	leaving  int64 // the part of used that will go: being demoted, or evicted
	claimed  int64 // granted to writers, not yet part of used
	peak     int64
	entries  int64 // entries whose current replica is here
	asks     queue // for claims to become reservations
}

func (c *Cache) newLevel(i int, cfg Level, last bool) *level {
	l := &level{Level: cfg, index: i, last: last, limit: cfg.Capacity}
	if cfg.Keep > 0 || !last { // else exactly
		l.limit = int64(float64(cfg.Capacity) * cmp.Or(cfg.Keep, KeepRatio))
	}
	l.order = c.policy.Evict(l.limit)
	l.groups, _ = l.order.(evict.Grouper)
	if l.Tier != nil {
		traits := l.Tier.Traits()
		l.extent = traits.Extent
		if traits.Layers > 1 { // a layer of all blocks of a request comes before the next one
			l.extent = math.MaxInt64
		}
	}
	return l
}

// giveBack returns bytes that were claimed, and others that were reserved and never became a
// replica.
func (l *level) giveBack(claimed, reserved int64) {
	l.claimed -= claimed
	l.used -= reserved
	l.reserved -= reserved
}

// grant turns a claim into a reservation, if the bytes are free.
func (l *level) grant(n int64) bool {
	if l.used+n > l.limit {
		return false
	}
	l.claimed -= n
	l.used += n
	l.reserved += n
	l.peak = max(l.peak, l.used)
	return true
}

// move is what has to be done with an entry that leaves its level before the bytes of a new one may
// come. Whoever does it holds a pin on from.
type move struct {
	e    *Entry
	at   int // index of the level that it leaves
	from *replica
	to   int  // index of Cache.levels; behind the last one: these bytes are deleted
	drop bool // and the entry lives on in another level
}

// aim is in which levels an entry is going to have bytes that it has not yet: in, where it is going
// to belong, and copy, where it has a copy, too. Nil: in no more.
type aim struct{ in, copy *level }

// levels calls do with each.
func (a aim) each(do func(*level)) {
	if a.in != nil {
		do(a.in)
	}
	if a.copy != nil {
		do(a.copy)
	}
}

// place is the first level from i on that an entry may live in. Below the last one there is none.
func (c *Cache) place(e *Entry, i int) int {
	for ; i < len(c.levels)-1; i++ {
		if e.size <= c.levels[i].limit && (c.policy.Admit == nil || c.policy.Admit(e, i)) {
			break
		}
	}
	return i
}

// search is the state of plan. It is kept between calls, because plans are many and the lists
// short. Guarded by the cache's lock.
type search struct {
	strict bool
	victim *evict.Item // the last one chosen
	at     int         // the level looked at
	short  int64       // bytes missing there
	need   []int64     // bytes to be claimed, by level; behind the last one those of the evicted
	moves  []move      // who leaves, upper levels first
}

// plan tries to find room for an entry where it aims at and commits it: entries that must leave are
// marked and appended to work, bytes are claimed in every level concerned, those of e itself where
// it aims at. It says false and changes nothing when too much of a level is in the hands of other
// writers.
//
// A strict plan takes nothing but the first victims: when one of them is busy it fails, too.
// Otherwise those that cannot leave now are passed over.
func (c *Cache) plan(e *Entry, to aim, strict bool, work *[]move) bool {
	s := &c.search
	s.strict, s.moves = strict, s.moves[:0]
	clear(s.need)
	to.each(func(l *level) { s.need[l.index] += e.size })
	for s.at = 0; s.at < len(c.levels); s.at++ {
		if s.need[s.at] == 0 {
			continue
		}
		l := c.levels[s.at]
		// Entries that together could never fit into this level, however empty (a cpu tier larger
		// than the storage under it), are sent further down: first victims first.
		for k := 0; k < len(s.moves) && s.need[s.at] > l.limit; k++ {
			if m := &s.moves[k]; m.to == s.at {
				m.to, m.drop = c.below(m.e, s.at+1)
				s.need[s.at] -= m.e.size
				s.need[m.to] += m.e.size
			}
		}
		s.short = l.used - l.leaving + l.claimed + s.need[s.at] - l.limit
		if s.short > 0 {
			s.victim = nil
			l.order.Victims(c.consider)
		}
		if s.short > 0 {
			return false
		}
	}
	for i, l := range c.levels {
		l.claimed += s.need[i]
	}
	// Lower levels first: an entry whose copy leaves cannot be dropped above for it. Those of one
	// level leave, and come to the next one, in the order of its victims.
	slices.SortStableFunc(s.moves, func(a, b move) int { return b.at - a.at })
	for _, m := range s.moves {
		c.vacate(&m)
		*work = append(*work, m)
	}
	return true
}

// vacate commits that an entry leaves a level, and pins what is left there.
func (c *Cache) vacate(m *move) {
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
		m.drop = false
		if !c.levels[m.at].last {
			c.moves.Refused.add(e.size)
		}
		m.from = e.cur.pin()
		c.evict(e)
	default:
		m.from = e.cur.pin()
		c.sink(e, c.levels[m.to])
	}
}

// choose takes v as a victim, if it can be one, and says whether that does not do yet.
func (c *Cache) choose(it *evict.Item) (more bool) {
	s, v := &c.search, it.Of.(*Entry)
	l, gone := c.levels[s.at], len(c.levels)
	if s.short <= 0 && !l.groups.Together(s.victim, it) {
		return false // enough, and nobody leaves with the last one
	}
	if s.strict && v.busy() {
		s.short = max(1, s.short) // of a group all have to leave
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

// below is where an entry goes that has to leave the level above i: to the next one that may hold
// it, or nowhere, if that is the last one, which has its copy or does not take it.
func (c *Cache) below(e *Entry, i int) (to int, drop bool) {
	gone := len(c.levels)
	to = c.place(e, i)
	if to >= gone-1 && (e.copied != nil || !c.admits(e)) {
		return gone, e.copied != nil
	}
	return to, false
}

// admits says whether an entry that leaves the level above the last one may go there.
func (c *Cache) admits(e *Entry) bool {
	switch c.policy.Place {
	case WriteThrough, Selective:
		return false // what is to be there has been copied
	}
	return int(e.asked) >= c.policy.After
}

// sink makes an entry one of a lower level; its bytes follow.
func (c *Cache) sink(e *Entry, to *level) {
	e.state = moving
	e.in.leaving += e.size
	e.in.order.Remove(e.item(e.in))
	e.in = to
	e.in.order.Add(e.item(to))
}

// leave gives a place of the write limit to whoever waits longest.
func (c *Cache) leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.places++
	c.answer(&c.writers)
}

// queue is who waits for something that others hold, in the order of coming. Guarded by the cache's
// lock.
type queue []*waiter

// waiter is what one waits for: that the room of an entry can be planned; that bytes are free in a
// level, so that a claim of them becomes a reservation; or else a place of the write limit. It is
// data and no function, because most never wait and that must cost no allocation.
type waiter struct {
	e      *Entry
	to     aim
	work   *[]move // of the plan
	in     *level
	bytes  int64
	served clock.Event
}

// serves gives a waiter what it wants, if it can. Callers hold the lock.
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

// answer lets go on whom it can, and nobody before one who came earlier.
func (c *Cache) answer(q *queue) {
	for len(*q) > 0 && c.serves((*q)[0]) {
		(*q)[0].served.Fire()
		*q = (*q)[1:]
	}
}

// await stands in line until it is served. After an error it was not.
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
	c.mu.Unlock()
	err := w.served.Wait(ctx)
	c.mu.Lock()
	if err == nil || w.served.Fired() { // perhaps in the same moment
		return nil
	}
	*q = slices.DeleteFunc(*q, func(x *waiter) bool { return x == w })
	c.serve() // it may have been in the way of others
	return err
}

// serve gives freed bytes to those who wait. Callers hold the lock and call it after every
// change that can free something or make a new victim.
func (c *Cache) serve() {
	for _, l := range c.levels {
		c.answer(&l.asks)
	}
	c.answer(&c.planning)
}
