package cache

import (
	"kvbench/tiers"
	"kvbench/tiers/clock"
	"kvbench/tiers/evict"
)

// state is the state of an entry.
type state uint8

const (
	pending  state = iota // a lease is going to write it; it has no bytes yet
	resident              // readable, a candidate for eviction
	moving                // readable, while its bytes are copied to another level
	evicted               // not in the index; its bytes are removed after the last reader
)

func (s state) String() string {
	return [...]string{"being written", "resident", "being moved", "evicted"}[s]
}

// Entry is one key of the index. Guarded by the cache's lock; policies read it under that lock.
type Entry struct {
	key   string
	size  int64
	asked uint32 // number of requests that wanted it
	state state
	in    *level      // the level to which it belongs and whose order has it; its bytes may follow later
	cur   *replica    // its bytes; nil until written
	uses  int         // number of leases with Prefix that are going to read or write it
	seen  bool        // read at least once since ResetGauges
	ready clock.Event // fires when the pending write ends or fails; nil: no lease waits

	// With a policy that keeps copies, an entry of an upper level may also be in the last level:
	// copied is its replica there. Copying means that the replica is planned but not written yet.
	copied  *replica
	copying bool

	upper evict.Item // in the order of a level above the last
	lower evict.Item // in the order of the last level
}

// Key returns the entry's key.
func (e *Entry) Key() string { return e.key }

// Size returns the entry's size in bytes.
func (e *Entry) Size() int64 { return e.size }

// item returns the entry's item for the order of a level.
func (e *Entry) item(l *level) *evict.Item {
	if l.last {
		return &e.lower
	}
	return &e.upper
}

// replicaIn returns the entry's replica in a level whose order has the entry.
func (e *Entry) replicaIn(l *level) *replica {
	if l.last && e.copied != nil {
		return e.copied
	}
	return e.cur
}

// replica is the bytes of one entry in one level. A demotion creates a second replica; the first one
// exists until its last reader unpins it.
type replica struct {
	obj     tiers.Object
	in      *level
	pins    int
	leaving bool // no new pins; the last unpin removes it
}

func (r *replica) pin() *replica {
	r.pins++
	return r
}

// busy reports whether an entry is being written or moved, or is going to be used.
func (e *Entry) busy() bool { return e.state != resident || e.uses > 0 }

// readable reports whether e is in the index and written.
func (e *Entry) readable() bool { return e != nil && e.cur != nil && e.state != evicted }

// resolve wakes the leases that wait for a pending entry.
func (e *Entry) resolve() {
	if e.ready != nil {
		e.ready.Fire()
		e.ready = nil
	}
}

// add adds an entry that is going to be written to the index and to the order of its level.
func (c *Cache) add(key string, size int64) *Entry {
	c.uses++
	e := &Entry{key: key, size: size, asked: 1}
	e.upper, e.lower = evict.Item{Entry: e, Recency: c.uses}, evict.Item{Entry: e, Recency: c.uses}
	e.in = c.levels[c.place(e, 0)]
	e.in.order.Add(e.item(e.in))
	if c.policy.Place == WriteThrough && !e.in.last {
		c.beginCopy(e)
	}
	c.index[key] = e
	return e
}

// touch makes e the most recent entry.
func (c *Cache) touch(e *Entry) {
	c.uses++
	e.upper.Recency, e.lower.Recency = c.uses, c.uses
	e.in.order.Touch(e.item(e.in))
	if e.hasLower() {
		c.last().order.Touch(&e.lower)
	}
}

// hasLower reports whether an entry of an upper level is also in the order of the last level.
func (e *Entry) hasLower() bool { return e.copied != nil || e.copying }

// last returns the terminal level.
func (c *Cache) last() *level { return c.levels[len(c.levels)-1] }

// forget removes an entry from the index. It does not remove a replica.
func (c *Cache) forget(e *Entry) {
	e.in.order.Remove(e.item(e.in))
	if e.hasLower() {
		c.last().order.Remove(&e.lower)
		e.copying = false
	}
	delete(c.index, e.key)
	e.state = evicted
}

// evict removes a resident entry from the index. Its replicas are removed with their last pins.
func (c *Cache) evict(e *Entry) {
	c.forget(e)
	e.cur.leave()
	if e.copied != nil {
		e.copied.leave()
	}
}

// leave stops new pins of a replica. Callers hold the lock and a pin on the replica.
func (r *replica) leave() {
	r.leaving = true
	r.in.leaving += r.obj.Size
	r.in.entries--
}

// newReplica turns a reservation into a replica of an object.
func (l *level) newReplica(o tiers.Object) *replica {
	l.reserved -= o.Size
	l.entries++
	return &replica{obj: o, in: l}
}

// publish turns a reservation into a replica and makes the entry readable.
func (c *Cache) publish(e *Entry, o tiers.Object, in *level) {
	e.state, e.cur = resident, in.newReplica(o)
	e.resolve()
}

// settle moves an entry of an upper level, without I/O, to the last level, which has its copy.
func (c *Cache) settle(e *Entry) {
	e.in.order.Remove(&e.upper)
	e.in, e.cur, e.copied, e.state = c.last(), e.copied, nil, resident
}

// dropCopy removes an entry's copy from the last level. The replica is removed with its last pin.
func (c *Cache) dropCopy(e *Entry) {
	c.last().order.Remove(&e.lower)
	e.copied.leave()
	e.copied = nil
}

// beginCopy marks an entry of an upper level that is going to have a copy in the last level.
func (c *Cache) beginCopy(e *Entry) {
	e.copying = true
	c.last().order.Add(&e.lower)
}
