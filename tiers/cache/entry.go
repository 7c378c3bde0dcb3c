package cache

import (
	"kvbench/tiers"
	"kvbench/tiers/clock"
)

// state is where an entry is in its life.
type state uint8

const (
	queued   state = iota // an owner is registered, nothing reserved yet
	writing               // the owner holds space and moves bytes
	resident              // readable, a candidate for eviction
	moving                // readable in its old tier while it sinks
	evicted               // out of the index; bytes go when the last reader leaves
)

func (s state) String() string {
	return [...]string{"queued", "being written", "resident", "being demoted", "evicted"}[s]
}

// entry is one key of the index. Guarded by Cache.mu.
type entry struct {
	key   string
	size  int64
	state state
	cur   *replica    // where its bytes are; nil until written
	ready clock.Event // fires when the pending write ends, either way; nil while nobody waits for it
	seq   uint64      // recency: greater is more recent
	seen  bool        // read at least once since the counters were reset

	// Of a block, see DecideBlocks:
	at   *space // the tier to which it belongs by decision, whose chain holds it from then on; nil: no block
	uses int    // open leases that are going to read or write it

	list       *chain // which recency chain holds it, nil if none
	prev, next *entry
}

// replica is the bytes of one entry in one tier. A demotion makes a second
// one; the first lives on until its last reader leaves.
type replica struct {
	obj    tiers.Object
	in     *space
	pins   int
	doomed bool // nobody new may pin it; the one who lets go last removes it
}

// chain is a doubly linked list of entries, least recent first.
type chain struct {
	head, tail *entry
}

func (c *chain) remove(e *entry) {
	if e.prev != nil {
		e.prev.next = e.next
	} else {
		c.head = e.next
	}
	if e.next != nil {
		e.next.prev = e.prev
	} else {
		c.tail = e.prev
	}
	e.prev, e.next, e.list = nil, nil, nil
}

// insert puts e behind the last entry that is less recent. What is touched now
// stops at once; what sinks from above arrives nearly in order (the tier above
// gives up its oldest first), so the walk is short there too.
func (c *chain) insert(e *entry) {
	at := c.tail
	for at != nil && at.seq > e.seq {
		at = at.prev
	}
	e.list, e.prev = c, at
	if at == nil {
		e.next, c.head = c.head, e
	} else {
		e.next, at.next = at.next, e
	}
	if e.next == nil {
		c.tail = e
	} else {
		e.next.prev = e
	}
}

// recency is the exact LRU order of one tier in two chains: entries touched
// while they lived here, and entries that sank into it with the recency they
// had above. Keeping them apart is what makes both insertions cheap and finding
// the victim O(1): it is the older of two heads, see walk.
type recency struct {
	touched, sunk chain
}

// settled wakes those who wait for a pending entry. Callers hold mu.
func (e *entry) settled() {
	if e.ready != nil {
		e.ready.Fire()
		e.ready = nil
	}
}

func older(a, b *entry) *entry {
	if a == nil || (b != nil && b.seq < a.seq) {
		return b
	}
	return a
}

// walk calls f from the least recent entry on until f returns false.
func (r *recency) walk(f func(*entry) bool) {
	a, b := r.touched.head, r.sunk.head
	for a != nil || b != nil {
		e := older(a, b)
		if e == a {
			a = a.next
		} else {
			b = b.next
		}
		if !f(e) {
			return
		}
	}
}

// touch makes e the most recent entry. Entries that are being demoted are in
// no chain; their new recency is used when they arrive.
func (c *Cache) touch(e *entry) {
	c.seq++
	e.seq = c.seq
	if e.list == nil || (e.next == nil && e.list == &e.home().lru.touched) {
		return
	}
	e.list.remove(e)
	e.home().lru.touched.insert(e)
}

// home is the tier in whose order e stands.
func (e *entry) home() *space {
	if e.at != nil {
		return e.at
	}
	return e.cur.in
}

// unlist takes e out of the order of its tier, if it stands in one.
func (e *entry) unlist() {
	if e.list != nil {
		e.list.remove(e)
	}
}

// busy says that a block is being written, sinks, or is going to be used by an open lease.
func (e *entry) busy() bool { return e.state != resident || e.uses > 0 }
