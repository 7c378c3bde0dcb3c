package workloads

import "time"

// frontier finds which arrivals are the first N of all users in time order, without writing down N of anything: it walks a
// second cursor per user through time and remembers where it counted the N-th. Until then every arrival up to the time
// that it has reached is among the first N.
type frontier struct {
	heap slotHeap // next uncounted arrival of each user
	seq  []int64  // its number
	left int64    // arrivals still to count
	last slotItem // the N-th arrival, once left is 0
}

func newFrontier(limit int64, firsts []slotItem) *frontier {
	f := &frontier{left: limit, seq: make([]int64, len(firsts))}
	for _, it := range firsts {
		f.heap.push(it)
	}
	return f
}

// advance counts the arrivals up to and including until. after returns the arrival that follows arrival seq of a user.
func (f *frontier) advance(until time.Duration, after func(slot int32, seq int64, at time.Duration) time.Duration) {
	for f.left > 0 && f.heap.len() > 0 && f.heap.top().at <= until {
		it := f.heap.top()
		f.left--
		if f.left == 0 {
			f.last = it
			f.heap.items, f.seq = nil, nil
			return
		}
		next := after(it.slot, f.seq[it.slot], it.at)
		f.seq[it.slot]++
		f.heap.replaceTop(slotItem{at: next, slot: it.slot})
	}
}

// within tells whether an arrival that the frontier has passed is among the first N. A nil frontier has no limit.
func (f *frontier) within(it slotItem) bool {
	return f == nil || f.left > 0 || !f.last.before(it)
}

// slotHeap is a binary min-heap of users (their slots) by time; equal times go by slot, so that the order is a function of
// the seed alone. The times are kept inside the heap: with 10,000 users, following an index to a cursor at each comparison
// would miss the cache.
type slotHeap struct{ items []slotItem }

type slotItem struct {
	at   time.Duration
	slot int32
}

func (a slotItem) before(b slotItem) bool {
	return a.at < b.at || a.at == b.at && a.slot < b.slot
}

func (h *slotHeap) len() int { return len(h.items) }

// top returns the earliest item of a heap that is not empty.
func (h *slotHeap) top() slotItem { return h.items[0] }

func (h *slotHeap) push(it slotItem) {
	h.items = append(h.items, it)
	i := len(h.items) - 1
	for i > 0 {
		parent := (i - 1) / 2
		if !it.before(h.items[parent]) {
			break
		}
		h.items[i] = h.items[parent]
		i = parent
	}
	h.items[i] = it
}

func (h *slotHeap) pop() slotItem {
	first := h.items[0]
	last := len(h.items) - 1
	it := h.items[last]
	h.items = h.items[:last]
	if last > 0 {
		h.sink(it)
	}
	return first
}

// replaceTop changes the time of the earliest item.
func (h *slotHeap) replaceTop(it slotItem) { h.sink(it) }

// sink puts it into the hole at the top and lets it fall to its place.
func (h *slotHeap) sink(it slotItem) {
	n, i := len(h.items), 0
	for {
		child := 2*i + 1
		if child >= n {
			break
		}
		if child+1 < n && h.items[child+1].before(h.items[child]) {
			child++
		}
		if !h.items[child].before(it) {
			break
		}
		h.items[i] = h.items[child]
		i = child
	}
	h.items[i] = it
}

// filter keeps the items for which keep is true.
func (h *slotHeap) filter(keep func(slotItem) bool) {
	old := h.items
	h.items = old[:0]
	for _, it := range old {
		if keep(it) {
			h.push(it)
		}
	}
}
