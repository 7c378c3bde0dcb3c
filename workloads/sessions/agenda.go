package sessions

// agenda is a container/heap.Interface of items that order themselves: the first one comes before all
// others.
type agenda[T interface{ Before(T) bool }] []T

// Len implements heap.Interface.
func (h agenda[T]) Len() int { return len(h) }

// Less implements heap.Interface.
func (h agenda[T]) Less(i, j int) bool { return h[i].Before(h[j]) }

// Swap implements heap.Interface.
func (h agenda[T]) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

// Push implements heap.Interface.
func (h *agenda[T]) Push(item any) { *h = append(*h, item.(T)) }

// Pop implements heap.Interface.
func (h *agenda[T]) Pop() any {
	last := len(*h) - 1
	item := (*h)[last]
	clear((*h)[last:]) // what it points to can be freed
	*h = (*h)[:last]
	return item
}
