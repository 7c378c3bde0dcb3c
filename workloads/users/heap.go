package users

import "time"

// userItem is a user at the time of an arrival. The item has the sort keys itself: with 10,000 users,
// reading them from the cursor at each comparison would miss the CPU cache.
type userItem struct {
	priority int // in the ready heap; 0 in the future heap
	at       time.Duration
	tie      int64 // its slot, so that the order depends on the seed alone
	cursor   *cursor
}

// before orders by priority, time and tie.
func (a userItem) before(b userItem) bool {
	switch {
	case a.priority != b.priority:
		return a.priority > b.priority
	case a.at != b.at:
		return a.at < b.at
	}
	return a.tie < b.tie
}

// userHeap is a binary min-heap of users. container/heap would allocate for every item.
type userHeap []userItem

// push adds an item.
func (h *userHeap) push(it userItem) {
	*h = append(*h, it)
	items, i := *h, len(*h)-1
	for parent := (i - 1) / 2; i > 0 && it.before(items[parent]); parent = (i - 1) / 2 {
		items[i] = items[parent]
		i = parent
	}
	items[i] = it
}

// pop removes the earliest item.
func (h *userHeap) pop() userItem {
	items := *h
	first, last := items[0], items[len(items)-1]
	*h = items[:len(items)-1]
	if len(*h) > 0 {
		h.replaceTop(last)
	}
	return first
}

// replaceTop replaces the earliest item and restores the heap.
func (h userHeap) replaceTop(it userItem) {
	i := 0
	for child := 1; child < len(h); child = 2*i + 1 {
		if child+1 < len(h) && h[child+1].before(h[child]) {
			child++
		}
		if !h[child].before(it) {
			break
		}
		h[i] = h[child]
		i = child
	}
	h[i] = it
}

// dropSilent removes inactive users.
func (h *userHeap) dropSilent() {
	old := *h
	*h = old[:0] // push writes no farther than what was read
	for _, it := range old {
		if !it.cursor.silent {
			h.push(it)
		}
	}
}
