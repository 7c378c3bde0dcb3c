package cache

// Policy says where entries live and which have to leave. Its zero value is that of the
// specification: an exclusive waterfall with least recently used victims, in which reads
// promote nothing.
type Policy struct {
	Place   Placement
	Promote Promotion
	// Admit says whether an entry may live in a level that is not the last one; nil: wherever
	// it fits. It is asked under the cache's lock.
	Admit func(e *Entry, level int) bool
	// Evict makes the order of one level; nil: NewLRU.
	Evict func(capacity int64) Evictor
}

// Placement says in how many levels an entry lives.
type Placement uint8

// Exclusive: in one. New entries go to the fastest level that may hold them, and what has to
// leave a level moves to the next one.
const Exclusive Placement = 0

// Promotion says whether a read moves an entry up.
type Promotion uint8

// Never: it stays where it was found.
const Never Promotion = 0

// Evictor is the order in which one level gives up its entries. The cache calls it under its
// lock: an entry is added once to the level that it belongs to and removed when it belongs to
// another one, or to none.
type Evictor interface {
	Add(*Entry)                      // its recency may be older than that of others here
	Touch(*Entry)                    // it was used and is the most recent one
	Remove(*Entry)                   //
	Victims(yield func(*Entry) bool) // least worth keeping first
}

// lru is exact least recently used order: a ring by recency, which begins and ends at root.
type lru struct {
	root Entry  // less recent than any: what is behind it is the least recent
	sunk *Entry // of those that came with an old recency the last one: see Add
}

// NewLRU returns the order of least recent use.
func NewLRU(int64) Evictor {
	l := &lru{}
	l.root.prev, l.root.next, l.sunk = &l.root, &l.root, &l.root
	return l
}

// Add puts e behind the last entry that is less recent. What is new is the most recent, and
// what comes from the level above is more recent than what came from there before it: a level
// gives up its oldest first. So the place is the end of the ring or near the last such place,
// and the walk to it is short.
func (l *lru) Add(e *Entry) {
	at := l.root.prev
	if at.recency > e.recency {
		for at = l.sunk; at.recency > e.recency; {
			at = at.prev
		}
		for at.next.recency < e.recency { // ends before the last one, which is more recent
			at = at.next
		}
		l.sunk = e
	}
	e.prev, e.next = at, at.next
	at.next.prev = e
	at.next = e
}

func (l *lru) Touch(e *Entry) {
	if e != l.root.prev {
		l.Remove(e)
		l.Add(e)
	}
}

func (l *lru) Remove(e *Entry) {
	if l.sunk == e {
		l.sunk = e.prev
	}
	e.prev.next, e.next.prev = e.next, e.prev
	e.prev, e.next = nil, nil
}

func (l *lru) Victims(yield func(*Entry) bool) {
	for e := l.root.next; e != &l.root && yield(e); e = e.next {
	}
}
