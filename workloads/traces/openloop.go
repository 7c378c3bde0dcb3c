package traces

import (
	"cmp"
	"container/heap"
	"time"

	"kvbench/workloads"
	"kvbench/workloads/formats"
	"kvbench/workloads/users"
)

// openLoop is the requests of many sessions ordered by time, with a fixed number of live sessions. It is
// deterministic: the order depends on the recorded times, the number of live sessions and the seed alone.
//
// Each of the first sessions begins at a random time within the mean gap between its requests: all are
// live soon, and N such times are Poisson arrivals. When a session has ended the next one begins after an
// exponential pause, whose mean is the mean gap of the ended session.
type openLoop struct {
	played
	source sessionSource
	limit  int // live sessions
	stream users.Stream

	plays  agenda[*play]
	filled bool
	memory []int64
}

// next returns the next request, whose Stamp counts from the begin of the replay, and its session, nil after
// the last request. Blocks are valid until the next call.
func (o *openLoop) next() (row formats.Row, of *session, err error) {
	for !o.filled {
		s, err := o.source.next()
		if err != nil {
			return row, nil, err
		}
		if s != nil {
			o.begin()
			heap.Push(&o.plays, &play{session: s, begun: within(s, o.stream)})
		}
		o.filled = s == nil || len(o.plays) == o.limit
	}
	if len(o.plays) == 0 {
		return row, nil, nil
	}
	p := o.plays[0]
	of, row = p.session, p.session.row(p.step, o.memory)
	row.Stamp, o.memory = p.at(), row.Blocks
	o.row(of)
	if p.step++; p.step < len(of.steps) {
		heap.Fix(&o.plays, 0)
		return row, of, nil
	}
	o.end()
	follower, err := o.source.next()
	if follower == nil || err != nil {
		heap.Pop(&o.plays)
		return row, of, err
	}
	o.begin()
	*p = play{session: follower, begun: p.begun + of.length() + pause(of, o.stream)}
	heap.Fix(&o.plays, 0)
	return row, of, nil
}

// within returns when one of the first sessions begins.
func within(s *session, stream users.Stream) time.Duration {
	return workloads.Nanoseconds(stream.Unit(users.DrawSession, s.number) * float64(s.gap()))
}

// pause returns the time between the end of a session and the begin of the next one.
func pause(s *session, stream users.Stream) time.Duration {
	mean := max(s.gap(), time.Millisecond)
	return workloads.Seconds(stream.Exponential(users.DrawPause, s.number, mean.Seconds()))
}

// play is a live session: its begin and its next step.
type play struct {
	session *session
	begun   time.Duration
	step    int
}

// at returns the time of its next request.
func (p *play) at() time.Duration { return p.begun + p.session.steps[p.step].Stamp }

// Before orders by the time of the next request. Equal times go by the sessions' numbers.
func (p *play) Before(q *play) bool {
	return cmp.Or(cmp.Compare(p.at(), q.at()),
		cmp.Compare(p.session.number, q.session.number)) < 0
}

// agenda is a container/heap.Interface of items with an order; the first one comes before all others.
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
	clear((*h)[last:]) // so that the item can be freed
	*h = (*h)[:last]
	return item
}
