package users

import "time"

// userItem is a user at the time of one of its arrivals. What orders it is kept next to the cursor:
// with 10,000 users, looking into a cursor at each comparison would miss the cache.
type userItem struct {
	priority int // of those who are served; 0 in time
	at       time.Duration
	tie      int64 // its slot, so that the order is a function of the seed alone
	cursor   *cursor
}

// before orders by priority and time. Equal ones go by tie.
func (a userItem) before(b userItem) bool {
	switch {
	case a.priority != b.priority:
		return a.priority > b.priority
	case a.at != b.at:
		return a.at < b.at
	}
	return a.tie < b.tie
}

// userHeap is a binary min-heap of users: its first one is the earliest. container/heap would box
// an item at every step.
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

// pop takes the earliest item off.
func (h *userHeap) pop() userItem {
	items := *h
	first, last := items[0], items[len(items)-1]
	*h = items[:len(items)-1]
	if len(*h) > 0 {
		h.replaceTop(last)
	}
	return first
}

// replaceTop puts an item in the place of the earliest one and lets it fall to its own.
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

// dropSilent takes the users out that do not ask any more.
func (h *userHeap) dropSilent() {
	old := *h
	*h = old[:0] // push writes no farther than what was read
	for _, it := range old {
		if !it.cursor.silent {
			h.push(it)
		}
	}
}
