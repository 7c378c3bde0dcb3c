package evict

// lru is exact least recently used order: a ring by recency, which begins and ends at root.
type lru struct {
	root Item  // less recent than any: what is behind it is the least recent
	sunk *Item // of those that came with an old recency the last one: see Add
}

// NewLRU returns the order of least recent use, by Recency and not by the order of calls: what
// comes from another level brings its age with it. The capacity does not matter, as in all orders
// that look at no sizes.
func NewLRU(int64) Order {
	l := &lru{}
	l.root.prev, l.root.next, l.sunk = &l.root, &l.root, &l.root
	return l
}

// Add puts e behind the last entry that is less recent. What is new is the most recent, and
// what comes from the level above is more recent than what came from there before it: a level
// gives up its oldest first. So the place is the end of the ring or near the last such place,
// and the walk to it is short.
func (l *lru) Add(e *Item) {
	at := l.root.prev
	if at.Recency > e.Recency {
		for at = l.sunk; at.Recency > e.Recency; {
			at = at.prev
		}
		for at.next.Recency < e.Recency { // ends before the last one, which is more recent
			at = at.next
		}
		l.sunk = e
	}
	e.prev, e.next = at, at.next
	at.next.prev = e
	at.next = e
}

// Touch keeps an item that is the most recent one where it is, as most are that are used twice.
func (l *lru) Touch(e *Item) {
	if e != l.root.prev {
		l.Remove(e)
		l.Add(e)
	}
}

// Remove takes it out of the ring, wherever it stands, and
// leaves the place that Add begins at where it was.
func (l *lru) Remove(e *Item) {
	if l.sunk == e {
		l.sunk = e.prev
	}
	e.prev.next, e.next.prev = e.next, e.prev
	e.prev, e.next = nil, nil
}

// Victims are the ring.
func (l *lru) Victims(yield func(*Item) bool) {
	for e := l.root.next; e != &l.root && yield(e); e = e.next {
	}
}
