package evict

// Order is the order in which one level of a cache gives up what it holds. It is a function of the
// calls of Add, Touch and Remove alone: no clock, no chance. All of them come from one goroutine at
// a time.
type Order interface {
	Add(*Item)    // it is new here; its Recency may be older than that of others
	Touch(*Item)  // it was used, and its Recency is the greatest
	Remove(*Item) // it has left, for whatever reason
	// Victims calls yield with all items, those least worth keeping first, until it says that this
	// will do. It changes nothing.
	Victims(yield func(*Item) bool)
}

// Grouper is an Order whose victims leave together with others.
type Grouper interface {
	Order
	// Together says whether b, the victim behind a, leaves where a does.
	Together(a, b *Item) bool
}

// Orders makes those that stand alone, by their names, for a level of that many bytes.
var Orders = map[string]func(capacity int64) Order{
	"lru": NewLRU, "fifo": NewFIFO, "lfu": NewLFU, "s3-fifo": NewS3FIFO,
}

// Held is what a level holds.
type Held interface {
	Key() string
	Size() int64 // bytes
}

// Item is something held, in one order. What an order keeps about it is here, so that a use
// allocates nothing.
type Item struct {
	Of      Held
	Recency uint64 // the number of its last use: greater is more recent

	prev, next *Item
	ring       *ring  // in which it is
	hits       uint32 // uses since it came, or what an order makes of them
	unit       int64  // with which others it leaves
}

// ring is items in an order of their own, which begins and ends at root.
type ring struct {
	root  Item // root.Of is nil
	n     int
	bytes int64
	of    *frequency // whose it is, in an order of uses
}

func newRing() *ring {
	r := &ring{}
	r.root.prev, r.root.next = &r.root, &r.root
	return r
}

// push puts an item behind all others.
func (r *ring) push(it *Item) { r.insert(it, r.root.prev) }

// insert puts an item behind another.
func (r *ring) insert(it, behind *Item) {
	it.prev, it.next, it.ring = behind, behind.next, r
	behind.next.prev, behind.next = it, it
	r.bytes += it.Of.Size()
	r.n++
}

// take takes an item out of its ring.
func (it *Item) take() {
	it.ring.bytes -= it.Of.Size()
	it.ring.n--
	it.prev.next, it.next.prev = it.next, it.prev
	it.prev, it.next, it.ring = nil, nil, nil
}

// each calls yield with all items, first to last, until it says that this will do.
func (r *ring) each(yield func(*Item) bool) { r.visit(yield) }

// visit is each that says whether it came to the end.
func (r *ring) visit(yield func(*Item) bool) bool {
	for it := r.root.next; it != &r.root; it = it.next {
		if !yield(it) {
			return false
		}
	}
	return true
}

// fifo gives up what came first, whatever was used since.
type fifo struct{ *ring }

// NewFIFO returns the order of coming.
func NewFIFO(int64) Order { return fifo{newRing()} }

func (f fifo) Add(it *Item)                   { f.push(it) }
func (f fifo) Touch(*Item)                    {}
func (f fifo) Remove(it *Item)                { it.take() }
func (f fifo) Victims(yield func(*Item) bool) { f.each(yield) }

// buckets gives up what came first, with all that came into its bucket.
type buckets struct {
	fifo
	bytes, keys int64 // of a bucket
	unit        int64 // of the one that is filled
	filled, n   int64
}

// NewBuckets returns the order of buckets that hold so many bytes or keys, whichever comes first.
func NewBuckets(bytes, keys int64) Order {
	return &buckets{fifo: fifo{newRing()}, bytes: bytes, keys: keys}
}

func (b *buckets) Add(it *Item) {
	if b.filled+it.Of.Size() > b.bytes || b.n == b.keys {
		b.unit++
		b.filled, b.n = 0, 0
	}
	b.filled += it.Of.Size()
	b.n++
	it.unit = b.unit
	b.push(it)
}

// Together says that they are in one bucket.
func (b *buckets) Together(x, y *Item) bool { return x.unit == y.unit }
