package evict

// Order is the eviction order of one level. It depends on the calls of Add, Touch and Remove alone, and
// not on a clock or on random numbers. One goroutine at a time may call its methods.
type Order interface {
	Add(*Item)    // a new item; its Recency may be older than that of others
	Touch(*Item)  // the item was used, and its Recency is the greatest
	Remove(*Item) // the item has left, for any reason
	// Victims calls yield with all items, in the order of eviction, until yield returns false. It
	// changes nothing.
	Victims(yield func(*Item) bool)
}

// Grouper is an Order whose victims leave in groups.
type Grouper interface {
	Order
	// Together reports whether b, the victim after a, leaves together with a.
	Together(a, b *Item) bool
}

// orders are the orders without groups, with their constructors for a level of that many bytes. A new one is a
// file and a line here: values, help and checks of -evict follow.
var orders = []struct {
	name string
	make func(capacity int64) Order
}{
	{"lru", NewLRU},
	{"fifo", NewFIFO},
	{"lfu", NewLFU},
	{"s3-fifo", NewS3FIFO},
}

// Names are the names of the orders without groups.
func Names() (names []string) {
	for _, o := range orders {
		names = append(names, o.name)
	}
	return names
}

// Named returns the constructor of an order, nil for an unknown name.
func Named(name string) func(capacity int64) Order {
	for _, o := range orders {
		if o.name == name {
			return o.make
		}
	}
	return nil
}

// Held is an object that a level holds.
type Held interface {
	Key() string
	Size() int64 // bytes
}

// Item is a held object in one order. It contains the order's state of the object, so that a use
// allocates nothing.
type Item struct {
	Entry   Held
	Recency uint64 // the number of its last use: greater is more recent

	prev, next *Item
	ring       *ring  // the ring that contains it
	hits       uint32 // uses since Add, as the order counts them
	unit       int64  // number of its group
}

// ring is a circular list of items, with root as sentinel.
type ring struct {
	root      Item // root.Entry is nil
	n         int
	bytes     int64
	frequency *frequency // the frequency of its items, in LFU
}

func newRing() *ring {
	r := &ring{}
	r.root.prev, r.root.next = &r.root, &r.root
	return r
}

// push appends an item.
func (r *ring) push(it *Item) { r.insert(it, r.root.prev) }

// insert inserts an item after another.
func (r *ring) insert(it, behind *Item) {
	it.prev, it.next, it.ring = behind, behind.next, r
	behind.next.prev, behind.next = it, it
	r.bytes += it.Entry.Size()
	r.n++
}

// take removes an item from its ring.
func (it *Item) take() {
	it.ring.bytes -= it.Entry.Size()
	it.ring.n--
	it.prev.next, it.next.prev = it.next, it.prev
	it.prev, it.next, it.ring = nil, nil, nil
}

// Victims calls yield with all items, first to last, until yield returns false.
func (r *ring) Victims(yield func(*Item) bool) { r.visit(yield) }

// visit is Victims with a result: it reports whether it reached the end.
func (r *ring) visit(yield func(*Item) bool) bool {
	for it := r.root.next; it != &r.root; it = it.next {
		if !yield(it) {
			return false
		}
	}
	return true
}

// fifo evicts the oldest item, and ignores uses.
type fifo struct{ *ring }

// NewFIFO returns FIFO order.
func NewFIFO(int64) Order { return fifo{newRing()} }

func (f fifo) Add(it *Item)    { f.push(it) }
func (f fifo) Touch(*Item)     {}
func (f fifo) Remove(it *Item) { it.take() }

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

// buckets evicts the oldest bucket with all its items.
type buckets struct {
	fifo
	bytes, keys int64 // of a bucket
	unit        int64 // number of the bucket that is being filled
	filled, n   int64
}

// NewBuckets returns FIFO order of buckets. A bucket is full at so many bytes or keys, whichever comes
// first.
func NewBuckets(bytes, keys int64) Order {
	return &buckets{fifo: fifo{newRing()}, bytes: bytes, keys: keys}
}

func (b *buckets) Add(it *Item) {
	if b.filled+it.Entry.Size() > b.bytes || b.n == b.keys {
		b.unit++
		b.filled, b.n = 0, 0
	}
	b.filled += it.Entry.Size()
	b.n++
	it.unit = b.unit
	b.push(it)
}

// Together reports whether both are in one bucket.
func (b *buckets) Together(x, y *Item) bool { return x.unit == y.unit }
