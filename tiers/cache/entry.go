package cache

import (
	"kvbench/tiers"
	"kvbench/tiers/clock"
)

// state is where an entry is in its life.
type state uint8

const (
	pending  state = iota // an owner is registered, no bytes yet
	resident              // readable, a candidate for eviction
	demoting              // readable in its old level while it moves to the next
	evicted               // out of the index; bytes go when the last reader leaves
)

func (s state) String() string {
	return [...]string{"being written", "resident", "being demoted", "evicted"}[s]
}

// Entry is one key of the index. Guarded by the cache's lock, under which policies see it.
type Entry struct {
	key     string
	size    int64
	recency uint64 // the number of its last use: greater is more recent
	state   state
	in      *level   // to which it belongs by decision, in whose order; bytes may follow later
	cur     *replica // where its bytes are; nil until written
	uses    int      // leases with Prefix that are going to read or write it
	seen    bool     // read at least once since ResetGauges

	ready clock.Event // fires when the pending write ends, either way; nil: nobody waits

	prev, next *Entry // in the order of its level
}

// Key names the entry.
func (e *Entry) Key() string { return e.key }

// Size is its bytes.
func (e *Entry) Size() int64 { return e.size }

// replica is the bytes of one entry in one level. A demotion makes a second one; the first
// lives on until its last reader leaves.
type replica struct {
	obj     tiers.Object
	in      *level
	pins    int
	leaving bool // nobody new may pin it; who lets go last removes it
}

func (r *replica) pin() *replica {
	r.pins++
	return r
}

// busy says that a block is being written or demoted, or is going to be used.
func (e *Entry) busy() bool { return e.state != resident || e.uses > 0 }

// readable says that e is there and written.
func (e *Entry) readable() bool { return e != nil && e.cur != nil && e.state != evicted }

// resolve wakes those who wait for a pending entry.
func (e *Entry) resolve() {
	if e.ready != nil {
		e.ready.Fire()
		e.ready = nil
	}
}

// add registers an entry that is going to be written, in the order of the level where it
// will live.
func (c *Cache) add(key string, size int64) *Entry {
	c.uses++
	e := &Entry{key: key, size: size, recency: c.uses}
	e.in = c.levels[c.place(e, 0)]
	e.in.order.Add(e)
	c.index[key] = e
	return e
}

// touch makes e the most recent entry.
func (c *Cache) touch(e *Entry) {
	c.uses++
	e.recency = c.uses
	e.in.order.Touch(e)
}

// forget takes an entry out of the index. Its replica, if it has one, is not looked after.
func (c *Cache) forget(e *Entry) {
	e.in.order.Remove(e)
	delete(c.index, e.key)
	e.state = evicted
}

// evict takes a resident entry out of the index. Its replica goes with the last pin on it.
func (c *Cache) evict(e *Entry) {
	c.forget(e)
	e.cur.leaving = true
	e.cur.in.leaving += e.size
	e.cur.in.entries--
}

// publish makes an entry readable whose bytes have taken the place of a reservation.
func (c *Cache) publish(e *Entry, o tiers.Object, in *level) {
	e.state, e.cur = resident, &replica{obj: o, in: in}
	in.reserved -= e.size
	in.entries++
	e.resolve()
}
