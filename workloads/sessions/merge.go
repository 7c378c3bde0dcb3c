package sessions

import (
	"cmp"
	"container/heap"
	"time"

	"kvbench/workloads"
	"kvbench/workloads/formats"
	"kvbench/workloads/profile"
)

// Merge is the requests of many sessions in the order of their times, of which so many are live at
// any time. It is deterministic: which requests come between two of a session follows from the
// recorded times, from the number of live sessions and from the seed.
//
// The first sessions begin at a random moment within the mean gap between their own requests: all
// are live soon, and N such moments are Poisson arrivals. Where one has ended the next one begins
// after an exponential pause, of the mean gap between the requests of the one that ended.
type Merge struct {
	next   Next
	live   int // sessions at a time
	stream profile.Stream

	plays  agenda[*play]
	filled bool
	memory []int64
}

// NewMerge makes the row of requests of at least one live session.
func NewMerge(next Next, live int, stream profile.Stream) *Merge {
	return &Merge{next: next, live: live, stream: stream}
}

// Next returns the next request, its Stamp the time since the merge's beginning, the session that
// it is of, and whether it is the last of that. Behind the last request the session is nil. Blocks
// are valid until the next call.
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

// Live is how many sessions are.
func (m *Merge) Live() int { return len(m.plays) }

// within is when one of the first sessions begins.
func within(s *Session, stream profile.Stream) time.Duration {
	return workloads.Nanoseconds(stream.Unit(profile.DrawSession, s.Number) * float64(s.gap()))
}

// pause is the time between a session and the one that follows it.
func pause(s *Session, stream profile.Stream) time.Duration {
	mean := max(s.gap(), time.Millisecond)
	return workloads.Seconds(stream.Exponential(profile.DrawPause, s.Number, mean.Seconds()))
}

// play is a live session: when it began, and what it asks for next.
type play struct {
	session *Session
	begun   time.Duration
	step    int
}

// at is the time of its next request.
func (p *play) at() time.Duration { return p.begun + p.session.Steps[p.step].Stamp }

// Before orders by the time of the next request. Equal times go by the sessions' numbers.
func (p *play) Before(q *play) bool {
	return cmp.Or(cmp.Compare(p.at(), q.at()),
		cmp.Compare(p.session.Number, q.session.Number)) < 0
}

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
