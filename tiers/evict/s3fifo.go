package evict

// s3fifo is S3-FIFO (Yang and others, "FIFO queues are all you need for cache eviction", SOSP
// 2023): what is new comes into a small queue of a tenth of the level, and out of it into the main
// queue if it was used twice meanwhile, else it leaves and its key is remembered for as long as
// there are entries; who is remembered comes into the main queue at once. In that an entry whose
// turn it is goes to the end again as often as it was used, up to three times.
type s3fifo struct {
	small, main *ring
	part        int64          // bytes of the small queue
	ghost       map[string]int // remembered keys, and which of old is theirs
	old         []string
	forgotten   int // of old
}

// mostHits is up to which number S3-FIFO counts uses.
const mostHits = 3

// kept is how many uses in the small queue let an entry into the main one.
const kept = 2

// NewS3FIFO returns the order of S3-FIFO.
func NewS3FIFO(capacity int64) Order {
	return &s3fifo{small: newRing(), main: newRing(), part: max(1, capacity/10),
		ghost: make(map[string]int)}
}

func (f *s3fifo) Add(it *Item) {
	it.hits = 0
	if _, known := f.ghost[it.Of.Key()]; known {
		delete(f.ghost, it.Of.Key())
		f.main.push(it)
		return
	}
	f.small.push(it)
}

func (f *s3fifo) Touch(it *Item) { it.hits = min(it.hits+1, mostHits) }

// Victims are in the order in which they would leave one after the other, without what comes in
// meanwhile.
func (f *s3fifo) Victims(yield func(*Item) bool) {
	it := f.small.root.next
	small := func(v *Item) bool { return v.hits >= kept || yield(v) }
	moved := f.main.n > 0
	for left := f.small.bytes; it != &f.small.root && (left >= f.part || !moved); it = it.next {
		left -= it.Of.Size()
		moved = moved || it.hits >= kept
		if !small(it) {
			return
		}
	}
	for round := uint32(0); round <= mostHits; round++ {
		for v := range f.main.each {
			if v.hits == round && !yield(v) {
				return
			}
		}
		for v := f.small.root.next; round == 0 && v != it; v = v.next {
			if v.hits >= kept && !yield(v) { // in the main queue by then, and not used since
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

// Remove lets the first victim leave as the paper has it: what stands before it is kept, and goes
// to the end of the main queue. Whoever leaves out of turn changes nothing for others.
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
		f.remember(it.Of.Key())
	}
	it.take()
}

// turn makes it the next to leave its queue.
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

// remember keeps as many keys as there are entries, the oldest of them first to be forgotten. What
// has come back is no longer remembered, and stays in old until there are too many such.
func (f *s3fifo) remember(key string) {
	f.ghost[key] = f.forgotten + len(f.old)
	f.old = append(f.old, key)
	for len(f.ghost) > f.small.n+f.main.n {
		if at, known := f.ghost[f.old[0]]; known && at == f.forgotten {
			delete(f.ghost, f.old[0])
		}
		f.old = f.old[1:]
		f.forgotten++
	}
	if len(f.old) > 2*len(f.ghost)+64 {
		live := make([]string, 0, len(f.ghost))
		for i, k := range f.old {
			if at, known := f.ghost[k]; known && at == f.forgotten+i {
				live = append(live, k)
			}
		}
		f.old, f.forgotten = live, 0
		for i, k := range live {
			f.ghost[k] = i
		}
	}
}
