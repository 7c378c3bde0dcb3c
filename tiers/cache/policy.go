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

// lru is exact least recently used order: one list by recency.
type lru struct {
	head, tail *Entry // the head is the least recent
	sunk       *Entry // of those that came with an old recency the last one: see Add
}

// NewLRU returns the order of least recent use.
func NewLRU(int64) Evictor { return &lru{} }

// Add puts e behind the last entry that is less recent. What is new is the most recent, and
// what comes from the level above is more recent than what came from there before it: a level
// gives up its oldest first. So the place is the end of the list or near the last such place,
// and the walk to it is short.
func (l *lru) Add(e *Entry) {
	at := l.tail
	if at != nil && at.recency > e.recency {
		for at = l.sunk; at != nil && at.recency > e.recency; {
			at = at.prev
		}
		for next := l.behind(at); next.recency < e.recency; next = l.behind(at) {
			at = next // ends before the tail, which is more recent
		}
		l.sunk = e
	}
	next := l.behind(at)
	e.prev, e.next = at, next
	if at == nil {
		l.head = e
	} else {
		at.next = e
	}
	if next == nil {
		l.tail = e
	} else {
		next.prev = e
	}
}

// behind is the entry after at, or the first one.
func (l *lru) behind(at *Entry) *Entry {
	if at == nil {
		return l.head
	}
	return at.next
}

func (l *lru) Touch(e *Entry) {
	if e != l.tail {
		l.Remove(e)
		l.Add(e)
	}
}

func (l *lru) Remove(e *Entry) {
	if l.sunk == e {
		l.sunk = e.prev
	}
	if e.prev == nil {
		l.head = e.next
	} else {
		e.prev.next = e.next
	}
	if e.next == nil {
		l.tail = e.prev
	} else {
		e.next.prev = e.prev
	}
	e.prev, e.next = nil, nil
}

func (l *lru) Victims(yield func(*Entry) bool) {
	for e := l.head; e != nil && yield(e); e = e.next {
	}
}
