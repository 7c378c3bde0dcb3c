package cache

import (
	"kvbench/tiers"
	"kvbench/tiers/clock"
	"kvbench/tiers/evict"
)

// state is where an entry is in its life.
type state uint8

const (
	pending  state = iota // an owner is registered, no bytes yet
	resident              // readable, a candidate for eviction
	moving                // readable where it is, while its bytes are copied to another level
	evicted               // out of the index; bytes go when the last reader leaves
)

func (s state) String() string {
	return [...]string{"being written", "resident", "being moved", "evicted"}[s]
}

// Entry is one key of the index. Guarded by the cache's lock, under which policies see it.
type Entry struct {
	key   string
	size  int64
	asked uint32 // how many requests have asked for it
	state state
	in    *level      // to which it belongs by decision, in whose order; bytes may follow later
	cur   *replica    // where its bytes are; nil until written
	uses  int         // leases with Prefix that are going to read or write it
	seen  bool        // read at least once since ResetGauges
	ready clock.Event // fires when the pending write ends, either way; nil: nobody waits

	// With a policy that keeps copies an entry of an upper level may be in the last one, too:
	// copied is its replica there, and copying says that there is going to be one.
	copied  *replica
	copying bool

	upper evict.Item // in the order of the level above the last that it belongs to
	lower evict.Item // in that of the last one
}

// Key names the entry.
func (e *Entry) Key() string { return e.key }

// Size is its bytes.
func (e *Entry) Size() int64 { return e.size }

// item is the entry in the order of a level.
func (e *Entry) item(l *level) *evict.Item {
	if l.last {
		return &e.lower
	}
	return &e.upper
}

// replicaIn is the entry's bytes in a level to whose order it belongs.
func (e *Entry) replicaIn(l *level) *replica {
	if l.last && e.copied != nil {
		return e.copied
	}
	return e.cur
}

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
	e := &Entry{key: key, size: size, asked: 1}
	e.upper, e.lower = evict.Item{Of: e, Recency: c.uses}, evict.Item{Of: e, Recency: c.uses}
	e.in = c.levels[c.place(e, 0)]
	e.in.order.Add(e.item(e.in))
	if c.policy.copiesAtWrite() && !e.in.last {
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

// hasLower says that e, which belongs to an upper level, stands in the order of the last one, too.
func (e *Entry) hasLower() bool { return e.copied != nil || e.copying }

// last is the terminal level.
func (c *Cache) last() *level { return c.levels[len(c.levels)-1] }

// forget takes an entry out of the index. Its replica, if it has one, is not looked after.
func (c *Cache) forget(e *Entry) {
	e.in.order.Remove(e.item(e.in))
	if e.hasLower() {
		c.last().order.Remove(&e.lower)
		e.copying = false
	}
	delete(c.index, e.key)
	e.state = evicted
}

// evict takes a resident entry out of the index. Its replicas go with the last pins on them.
func (c *Cache) evict(e *Entry) {
	c.forget(e)
	e.cur.leave()
	if e.copied != nil {
		e.copied.leave()
	}
}

// leave says that nobody may pin a replica any more. Callers hold the lock, and a pin on it.
func (r *replica) leave() {
	r.leaving = true
	r.in.leaving += r.obj.Size
	r.in.entries--
}

// publish makes an entry readable whose bytes have taken the place of a reservation.
func (c *Cache) publish(e *Entry, o tiers.Object, in *level) {
	e.state, e.cur = resident, &replica{obj: o, in: in}
	in.reserved -= e.size
	in.entries++
	e.resolve()
}

// settle leaves an entry of an upper level to the copy that it has in the last one.
func (c *Cache) settle(e *Entry) {
	e.in.order.Remove(&e.upper)
	e.in, e.cur, e.copied, e.state = c.last(), e.copied, nil, resident
}

// dropCopy takes an entry's copy out of the last level. Its replica goes with the last pin on it.
func (c *Cache) dropCopy(e *Entry) {
	c.last().order.Remove(&e.lower)
	e.copied.leave()
	e.copied = nil
}

// beginCopy says that an entry of an upper level is going to have a copy in the last one.
func (c *Cache) beginCopy(e *Entry) {
	e.copying = true
	c.last().order.Add(&e.lower)
}
