package clock

import "time"

// event is a moment at which a coroutine goes on or a function is called.
type event struct {
	at      time.Duration
	seq     uint64 // events of one moment happen in the order in which they were made
	co      *coroutine
	f       func()
	watches bool // it does not count as something that is going to happen
}

func (e *event) before(o *event) bool { return e.at < o.at || e.at == o.at && e.seq < o.seq }

// eventHeap is a binary min-heap. container/heap would box every event: this is the
// innermost loop of a simulation.
type eventHeap []event

func (h *eventHeap) push(e event) {
	s := append(*h, e)
	*h = s
	for i := len(s) - 1; i > 0; {
		parent := (i - 1) / 2
		if !s[i].before(&s[parent]) {
			break
		}
		s[i], s[parent] = s[parent], s[i]
		i = parent
	}
}

func (h *eventHeap) pop() event {
	s := *h
	first, last := s[0], len(s)-1
	s[0], s[last] = s[last], event{}
	s = s[:last]
	*h = s
	for i := 0; ; {
		child := 2*i + 1
		if child >= last {
			return first
		}
		if child+1 < last && s[child+1].before(&s[child]) {
			child++
		}
		if !s[child].before(&s[i]) {
			return first
		}
		s[i], s[child] = s[child], s[i]
		i = child
	}
}
