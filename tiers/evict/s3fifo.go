package evict

import "container/list"

// s3fifo is S3-FIFO (Yang and others, "FIFO queues are all you need for cache eviction", SOSP 2023). A
// new item enters the small queue, a tenth of the level. An item that was used twice there moves to the
// main queue. Other items leave, and their keys enter the ghost queue, which has as many keys as there
// are items. An item whose key is in the ghost queue enters the main queue at once. At the head of the
// main queue an item with uses moves to the tail, and its count of uses (up to three) decreases by one.
type s3fifo struct {
	small, main *ring
	part        int64     // bytes of the small queue
	ghost       list.List // of keys
	ghosts      map[string]*list.Element
}

// mostHits is the largest count of uses.
const mostHits = 3

// kept is the number of uses in the small queue that moves an item to the main queue.
const kept = 2

// NewS3FIFO returns S3-FIFO order.
func NewS3FIFO(capacity int64) Order {
	return &s3fifo{small: newRing(), main: newRing(), part: max(1, capacity/10),
		ghosts: make(map[string]*list.Element)}
}

func (f *s3fifo) Add(it *Item) {
	it.hits = 0
	key := it.Entry.Key()
	if g := f.ghosts[key]; g != nil {
		f.ghost.Remove(g)
		delete(f.ghosts, key)
		f.main.push(it)
		return
	}
	f.small.push(it)
}

func (f *s3fifo) Touch(it *Item) { it.hits = min(it.hits+1, mostHits) }

// Victims yields the items in the order in which they would leave without further Adds.
func (f *s3fifo) Victims(yield func(*Item) bool) {
	it := f.small.root.next
	small := func(v *Item) bool { return v.hits >= kept || yield(v) }
	moved := f.main.n > 0
	for left := f.small.bytes; it != &f.small.root && (left >= f.part || !moved); it = it.next {
		left -= it.Entry.Size()
		moved = moved || it.hits >= kept
		if !small(it) {
			return
		}
	}
	for round := uint32(0); round <= mostHits; round++ {
		for v := range f.main.Victims {
			if v.hits == round && !yield(v) {
				return
			}
		}
		for v := f.small.root.next; round == 0 && v != it; v = v.next {
			if v.hits >= kept && !yield(v) { // it would be in the main queue then, without new uses
				return
			}
		}
	}
	for v := it; v != &f.small.root; v = v.next {
		if !small(v) {
			return
		}
	}
	for v := it; v != &f.small.root; v = v.next {
		if v.hits >= kept && !yield(v) {
			return
		}
	}
}

// Remove removes the first victim as in the paper: the items before it move to the tail of the main
// queue. Removing any other item does not change the rest.
func (f *s3fifo) Remove(it *Item) {
	first := (*Item)(nil)
	for v := range f.Victims {
		first = v
		break
	}
	if it == first {
		f.turn(it)
	}
	if it.ring == f.small && it.hits < kept {
		f.remember(it.Entry.Key())
	}
	it.take()
}

// turn moves items to the main queue's tail until it is the next item to leave.
func (f *s3fifo) turn(it *Item) {
	for {
		if f.small.bytes >= f.part || f.main.n == 0 {
			v := f.small.root.next
			if v == it && v.hits < kept {
				return
			}
			v.take()
			v.hits = 0
			f.main.push(v)
			continue
		}
		v := f.main.root.next
		if v == it && v.hits == 0 {
			return
		}
		v.take()
		v.hits = max(v.hits, 1) - 1
		f.main.push(v)
	}
}

// remember adds a key to the ghost queue. The queue has at most as many keys as there are items, so it
// drops the oldest ones.
func (f *s3fifo) remember(key string) {
	f.ghosts[key] = f.ghost.PushBack(key)
	for f.ghost.Len() > f.small.n+f.main.n {
		oldest := f.ghost.Front()
		f.ghost.Remove(oldest)
		delete(f.ghosts, oldest.Value.(string))
	}
}
