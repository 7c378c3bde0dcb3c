package cache

import (
	"context"

	"kvbench/tiers"
	"kvbench/tiers/clock"
)

// space is the book of one tier. Guarded by Cache.mu.
//
// A writer's path is granted in one step: at each tier it chooses the entries
// that have to leave and claims the bytes it needs against them. Claims become
// reservations (used) in the order in which they are asked for, as soon as the
// bytes are really free: a deletion has returned, a demoted copy is gone. At
// every moment
//
//	used                     <= limit     capacity is never exceeded
//	used - leaving + claimed <= limit     every claim can be met once what leaves has left
//
// and used is exactly the sum of the replicas in the tier plus reservations.
type space struct {
	level    tiers.Kind
	tier     tiers.Tier
	extent   int64 // bytes of neighbours that it moves together, 0 = none
	capacity int64
	limit    int64 // 80 % of capacity, 100 % in the last tier

	used     int64 // replicas (also doomed ones until they are deleted) + reservations
	reserved int64 // the part of used that has no replica yet
	leaving  int64 // the part of used that will go: being demoted, or doomed
	claimed  int64 // granted to writers, not yet part of used
	peak     int64
	entries  int64 // entries whose current replica is here
	lru      recency
	asks     []*ask
}

// ask is a claim waiting to become a reservation.
type ask struct {
	bytes   int64
	granted clock.Event
}

// ticket is a writer waiting until its path can be planned.
type ticket struct {
	size    int64
	path    *path
	granted clock.Event
}

// path is what a writer has to do before its bytes may move, lowest tier first.
type path struct {
	target  *space
	victims []*replica // what was evicted for good
	doomed  []*replica // those of them that nobody reads: the writer deletes them
	sink    []sinking  // to demote, lowest tier first
}

// sinking is one demotion of a path: the mover holds a pin on from.
type sinking struct {
	e    *entry
	from *replica
	to   *space
}

// home returns the first level from i on whose limit admits size.
func (c *Cache) home(i int, size int64) int {
	for ; i < len(c.levels)-1; i++ {
		if size <= c.levels[i].limit {
			break
		}
	}
	return i
}

// choice is one entry that has to leave tier from for tier to, or for good.
type choice struct {
	e        *entry
	from, to int // indices of Cache.levels; to = gone: evicted
}

const gone = -1

// plan tries to find room for size bytes and commits it: entries that must
// leave are marked, bytes are claimed in every tier of the path. It returns nil
// and changes nothing when too much of a tier is in the hands of other writers.
//
// A strict plan takes nothing but the least recent entries: when one of them is
// busy it returns nil too. Otherwise those that cannot leave now are passed over.
func (c *Cache) plan(size int64, strict bool) *path {
	top := c.home(0, size)
	var none [tiers.NumKinds]int64
	need := none[:len(c.levels)]
	need[top] = size
	var chosen []choice
	for i := top; i < len(c.levels); i++ {
		s := c.levels[i]
		c.overflow(i, need, chosen)
		short := s.used - s.leaving + s.claimed + need[i] - s.limit
		if short <= 0 {
			continue
		}
		s.lru.walk(func(e *entry) bool {
			if strict && e.busy() {
				return false
			}
			if e.state != resident {
				return true
			}
			to := c.below(i, e.size)
			if to != gone {
				need[to] += e.size
			}
			chosen = append(chosen, choice{e, i, to})
			short -= e.size
			return short > 0
		})
		if short > 0 {
			return nil
		}
	}
	for i, n := range need {
		c.levels[i].claimed += n
	}
	return c.commit(c.levels[top], chosen)
}

// overflow sends entries further down that together could never fit into tier i,
// however empty (a cpu tier larger than the storage under it): oldest first.
func (c *Cache) overflow(i int, need []int64, chosen []choice) {
	for k := range chosen {
		if need[i] <= c.levels[i].limit {
			return
		}
		ch := &chosen[k]
		if ch.to != i {
			continue
		}
		need[i] -= ch.e.size
		if ch.to = c.below(i, ch.e.size); ch.to != gone {
			need[ch.to] += ch.e.size
		}
	}
}

// below is where an entry goes that leaves tier i.
func (c *Cache) below(i int, size int64) int {
	if i == len(c.levels)-1 {
		return gone
	}
	return c.home(i+1, size)
}

// commit marks the chosen entries and makes the list of work, lowest tier first.
func (c *Cache) commit(target *space, chosen []choice) *path {
	p := &path{target: target}
	for k := len(chosen) - 1; k >= 0; k-- {
		ch := chosen[k]
		e, s := ch.e, c.levels[ch.from]
		if ch.to == gone {
			c.counters.Evicted++
			c.counters.EvictedBytes += e.size
			p.victims = append(p.victims, e.cur)
			if r := c.evict(e); r != nil {
				p.doomed = append(p.doomed, r)
			}
			continue
		}
		e.list.remove(e)
		e.state = moving
		if e.at != nil {
			e.at = c.levels[ch.to]
			e.at.lru.sunk.insert(e)
		}
		e.cur.pins++ // the mover's own
		s.leaving += e.size
		p.sink = append(p.sink, sinking{e, e.cur, c.levels[ch.to]})
	}
	return p
}

// evict takes a resident entry out of the index. It returns the replica when
// nobody reads it, so that the caller deletes it; else the last reader will.
func (c *Cache) evict(e *entry) *replica {
	r := e.cur
	e.list.remove(e)
	delete(c.index, e.key)
	e.state = evicted
	return c.doom(r)
}

// doom marks a replica as leaving for good; see evict for the result.
func (c *Cache) doom(r *replica) *replica {
	r.doomed = true
	r.in.leaving += r.obj.Size
	r.in.entries--
	if r.pins > 0 {
		return nil
	}
	return r
}

// reserve waits its turn and returns the granted path. After an error nothing
// is claimed.
func (c *Cache) reserve(ctx context.Context, size int64) (*path, error) {
	if err := c.Fits(size); err != nil {
		return nil, err
	}
	c.mu.Lock()
	if len(c.tickets) == 0 {
		if p := c.plan(size, false); p != nil {
			c.mu.Unlock()
			return p, nil
		}
	}
	t := &ticket{size: size, granted: c.clock.NewEvent()}
	c.tickets = append(c.tickets, t)
	c.mu.Unlock()
	err := t.granted.Wait(ctx)
	if err == nil {
		return t.path, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if t.path != nil { // granted in the same moment
		return t.path, nil
	}
	c.tickets = without(c.tickets, t)
	c.serve()
	return nil, err
}

// take turns the claim of n bytes in s into a reservation, waiting in line for
// the bytes to be free. On an error the claim is returned.
func (c *Cache) take(ctx context.Context, s *space, n int64) error {
	c.mu.Lock()
	if len(s.asks) == 0 && s.used+n <= s.limit {
		s.grant(n)
		c.mu.Unlock()
		return nil
	}
	a := &ask{bytes: n, granted: c.clock.NewEvent()}
	s.asks = append(s.asks, a)
	c.serve()
	c.mu.Unlock()
	err := a.granted.Wait(ctx)
	if err == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if a.granted.Fired() { // in the same moment
		return nil
	}
	s.asks = without(s.asks, a)
	s.claimed -= n
	c.serve()
	return err
}

// grant turns a claim into a reservation.
func (s *space) grant(n int64) {
	s.claimed -= n
	s.used += n
	s.reserved += n
	s.peak = max(s.peak, s.used)
}

// untake gives a reservation back whose bytes never became a replica.
func (c *Cache) untake(s *space, n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s.used -= n
	s.reserved -= n
	c.serve()
}

// ungrant turns a part of a reservation back into a claim, to be taken again.
func (c *Cache) ungrant(s *space, n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s.used -= n
	s.reserved -= n
	s.claimed += n
	c.serve()
}

// unclaim gives back a claim that was never asked for.
func (c *Cache) unclaim(s *space, n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s.claimed -= n
	c.serve()
}

// serve gives freed bytes to those who wait, in order. Callers hold mu and call
// it after every change that can free something or make a new victim.
func (c *Cache) serve() {
	for _, s := range c.levels {
		for len(s.asks) > 0 && s.used+s.asks[0].bytes <= s.limit {
			a := s.asks[0]
			s.asks = s.asks[1:]
			s.grant(a.bytes)
			a.granted.Fire()
		}
	}
	for len(c.tickets) > 0 {
		t := c.tickets[0]
		if t.path = c.plan(t.size, false); t.path == nil {
			return
		}
		c.tickets = c.tickets[1:]
		t.granted.Fire()
	}
}

func without[T comparable](list []T, x T) []T {
	for i, y := range list {
		if y == x {
			return append(list[:i:i], list[i+1:]...)
		}
	}
	return list
}
