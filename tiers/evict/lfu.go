package evict

// lfu evicts the item with the fewest uses since Add, and among those the least recently used one. It
// has one ring for each number of uses, in ascending order. Counts do not decay with time.
type lfu struct {
	root *frequency // sentinel before the lowest frequency
}

// frequency is the items with the same number of uses.
type frequency struct {
	*ring
	hits       uint32
	prev, next *frequency
}

// NewLFU returns LFU order.
func NewLFU(int64) Order {
	f := &lfu{root: &frequency{ring: newRing()}}
	f.root.prev, f.root.next = f.root, f.root
	return f
}

// Add counts the first use.
func (f *lfu) Add(it *Item) {
	it.hits = 1
	f.at(f.root, 1).push(it)
}

// at returns the frequency of that many uses, which follows behind; it may create it.
func (f *lfu) at(behind *frequency, hits uint32) *frequency {
	if n := behind.next; n != f.root && n.hits == hits {
		return n
	}
	n := &frequency{ring: newRing(), hits: hits, prev: behind, next: behind.next}
	n.frequency = n
	behind.next.prev, behind.next = n, n
	return n
}

func (f *lfu) Touch(it *Item) {
	from := it.ring.frequency
	it.take()
	it.hits++
	f.at(from, it.hits).push(it)
	f.clean(from)
}

func (f *lfu) Remove(it *Item) {
	from := it.ring.frequency
	it.take()
	f.clean(from)
}

// clean removes a frequency without items.
func (f *lfu) clean(n *frequency) {
	if n.n == 0 {
		n.prev.next, n.next.prev = n.next, n.prev
	}
}

func (f *lfu) Victims(yield func(*Item) bool) {
	for n := f.root.next; n != f.root; n = n.next {
		if !n.visit(yield) {
			return
		}
	}
}
