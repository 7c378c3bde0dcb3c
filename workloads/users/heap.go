package users

// Heap is a binary min-heap: its first item comes before all others. container/heap would allocate for every
// item.
type Heap[T interface{ Before(T) bool }] []T

// Push adds an item.
func (h *Heap[T]) Push(it T) {
	*h = append(*h, it)
	items, i := *h, len(*h)-1
	for parent := (i - 1) / 2; i > 0 && it.Before(items[parent]); parent = (i - 1) / 2 {
		items[i] = items[parent]
		i = parent
	}
	items[i] = it
}

// Pop removes the first item.
func (h *Heap[T]) Pop() T {
	items, n := *h, len(*h)-1
	first, last := items[0], items[n]
	clear(items[n:]) // so that the item can be freed
	*h = items[:n]
	if n > 0 {
		h.Replace(last)
	}
	return first
}

// Replace replaces the first item.
func (h Heap[T]) Replace(it T) {
	i := 0
	for child := 1; child < len(h); child = 2*i + 1 {
		if child+1 < len(h) && h[child+1].Before(h[child]) {
			child++
		}
		if !h[child].Before(it) {
			break
		}
		h[i] = h[child]
		i = child
	}
	h[i] = it
}
