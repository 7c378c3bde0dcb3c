package users

import "time"

// slotHeap is a binary min-heap of users (their slots) by time; equal times go by slot, so that the
// order is a function of the seed alone. The times are kept inside the heap: with 10,000 users,
// following an index to a cursor at each comparison would miss the cache.
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
		h.replaceTop(it)
	}
	return first
}

// replaceTop puts an item in the place of the earliest one and lets it fall to its own.
func (h *slotHeap) replaceTop(it slotItem) {
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
