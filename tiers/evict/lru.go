package evict

// lru is exact LRU order: a ring from the least recent item to the most recent one.
type lru struct {
	*ring
	sunk *Item // the last item that Add inserted before more recent items
}

// NewLRU returns exact LRU order, by Recency and not by the order of calls: an item that comes from
// another level keeps its age. The capacity does not matter.
func NewLRU(int64) Order {
	r := newRing()
	return &lru{ring: r, sunk: &r.root}
}

// Add inserts e after the last less recent item. A new item is the most recent one. An item that was
// demoted from the level above is more recent than the one demoted before it, because a level demotes
// its oldest first. So its place is the end of the list or near the last such place, and the walk is
// short.
func (l *lru) Add(e *Item) {
	at := l.root.prev
	if at.Recency > e.Recency {
		for at = l.sunk; at.Recency > e.Recency; {
			at = at.prev
		}
		for at.next.Recency < e.Recency { // ends at the latest at the last item, which is more recent
			at = at.next
		}
		l.sunk = e
	}
	l.insert(e, at)
}

// Touch does not move an item that is already the last, as most items that are used twice.
func (l *lru) Touch(e *Item) {
	if e != l.root.prev {
		l.Remove(e)
		l.Add(e)
	}
}

// Remove removes an item and keeps the place where Add begins its walk.
func (l *lru) Remove(e *Item) {
	if l.sunk == e {
		l.sunk = e.prev
	}
	e.take()
}
