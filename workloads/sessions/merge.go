package sessions

import (
	"cmp"
	"container/heap"
	"time"

	"kvbench/workloads"
	"kvbench/workloads/formats"
	"kvbench/workloads/profile"
)

// Merge is the requests of many sessions ordered by time, with a fixed number of live sessions. It is
// deterministic: the order depends on the recorded times, the number of live sessions and the seed alone.
//
// Each of the first sessions begins at a random time within the mean gap between its requests: all are
// live soon, and N such times are Poisson arrivals. When a session has ended the next one begins after an
// exponential pause, whose mean is the mean gap of the ended session.
type Merge struct {
	next   Next
	live   int // live sessions
	stream profile.Stream

	plays  agenda[*play]
	filled bool
	memory []int64
}

// NewMerge returns the Merge of at least one live session.
func NewMerge(next Next, live int, stream profile.Stream) *Merge {
	return &Merge{next: next, live: live, stream: stream}
}

// Next returns the next request, whose Stamp counts from the begin of the Merge, its session, and whether
// it is the session's last one. After the last request the session is nil. Blocks are valid until the next
// call.
func (m *Merge) Next() (row formats.Row, of *Session, last bool, err error) {
	for !m.filled {
		s, err := m.next()
		if err != nil {
			return row, nil, false, err
		}
		if s != nil {
			heap.Push(&m.plays, &play{session: s, begun: within(s, m.stream)})
		}
		m.filled = s == nil || len(m.plays) == m.live
	}
	if len(m.plays) == 0 {
		return row, nil, false, nil
	}
	p := m.plays[0]
	of, row = p.session, p.session.row(p.step, m.memory)
	row.Stamp, m.memory = p.at(), row.Blocks
	if p.step++; p.step < len(of.Steps) {
		heap.Fix(&m.plays, 0)
		return row, of, false, nil
	}
	follower, err := m.next()
	if follower == nil || err != nil {
		heap.Pop(&m.plays)
		return row, of, true, err
	}
	*p = play{session: follower, begun: p.begun + of.Length() + pause(of, m.stream)}
	heap.Fix(&m.plays, 0)
	return row, of, true, nil
}

// Live returns the number of live sessions.
func (m *Merge) Live() int { return len(m.plays) }

// within returns when one of the first sessions begins.
func within(s *Session, stream profile.Stream) time.Duration {
	return workloads.Nanoseconds(stream.Unit(profile.DrawSession, s.Number) * float64(s.gap()))
}

// pause returns the time between the end of a session and the begin of the next one.
func pause(s *Session, stream profile.Stream) time.Duration {
	mean := max(s.gap(), time.Millisecond)
	return workloads.Seconds(stream.Exponential(profile.DrawPause, s.Number, mean.Seconds()))
}

// play is a live session: its begin and its next step.
type play struct {
	session *Session
	begun   time.Duration
	step    int
}

// at returns the time of its next request.
func (p *play) at() time.Duration { return p.begun + p.session.Steps[p.step].Stamp }

// Before orders by the time of the next request. Equal times go by the sessions' numbers.
func (p *play) Before(q *play) bool {
	return cmp.Or(cmp.Compare(p.at(), q.at()),
		cmp.Compare(p.session.Number, q.session.Number)) < 0
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
