package traces

import (
	"cmp"
	"slices"
	"time"

	"kvbench/workloads"
	"kvbench/workloads/profile"
)

// maxWaiting bounds the requests that were read and not taken, to some tens of MB. A replay with
// more of them serves the most urgent of the oldest first.
const maxWaiting = 1 << 16

// queue is the requests that were read and not taken. Each class is a line in the order of the
// rows; a turn whose predecessor's entry is not written waits in its session instead.
type queue struct {
	// The lines, and which of them is whose. Where rows arrive as they are taken no request
	// waits, so that none can be preferred: then there is one.
	lines  [workloads.NumClasses][]*workloads.Request
	lineOf [workloads.NumClasses]int

	all    [workloads.NumClasses][]*workloads.Request // by class, turns in sessions among them
	closed bool
}

// waiting is how many requests there are, turns in sessions among them.
func (q *queue) waiting() (n int) {
	for _, class := range q.all {
		n += len(class)
	}
	return n
}

// order gives each class the line of its priority: higher ones first, equal ones together.
func (q *queue) order(p profile.Profile, byClass bool) {
	for c := range q.lineOf {
		for _, other := range p.QoS {
			if byClass && other.Priority > p.QoS[c].Priority {
				q.lineOf[c]++
			}
		}
	}
}

// add queues the request of the next row.
func (q *queue) add(r *workloads.Request, overtaking bool) {
	q.all[r.Class] = append(q.all[r.Class], r)
	c := sessionOf(r)
	switch {
	case c == nil || overtaking:
	case c.busy:
		c.turns = append(c.turns, r)
		return
	default:
		c.busy = true
	}
	q.put(r)
}

// put adds a request to the line of its class. Only a turn that has waited is not the last there.
func (q *queue) put(r *workloads.Request) {
	line := &q.lines[q.lineOf[r.Class]]
	*line = slices.Insert(*line, place(*line, r), r)
}

// place is where a request stands, or would, among others in the order of the rows.
func place(line []*workloads.Request, r *workloads.Request) int {
	i, _ := slices.BinarySearchFunc(line, r, func(a, b *workloads.Request) int {
		return cmp.Compare(a.Seq, b.Seq)
	})
	return i
}

// ready says whether there is a request that need not wait for another.
func (q *queue) ready() bool {
	return slices.ContainsFunc(q.lines[:], func(l []*workloads.Request) bool { return len(l) > 0 })
}

// take takes the most urgent request that has arrived, the first of its line; else it says when the
// next one arrives of those that are queued.
func (q *queue) take(now time.Duration) (r *workloads.Request, arrives time.Duration) {
	arrives = workloads.Never
	for i, line := range q.lines {
		if len(line) == 0 {
			continue
		}
		if r := line[0]; r.Arrival <= now {
			q.lines[i] = line[1:]
			if all := &q.all[r.Class]; (*all)[0] == r {
				*all = (*all)[1:]
			} else {
				at := place(*all, r)
				*all = slices.Delete(*all, at, at+1)
			}
			return r, 0
		}
		arrives = min(arrives, line[0].Arrival)
	}
	return nil, arrives
}

// written lets the next turn of a session queue up.
func (q *queue) written(c *session) {
	if q.closed || len(c.turns) == 0 {
		c.busy = false
		return
	}
	q.put(c.turns[0])
	c.turns = c.turns[1:]
}

// oldest is the arrival of the first of a class, Never for none.
func (q *queue) oldest(class workloads.Class) time.Duration {
	if len(q.all[class]) == 0 {
		return workloads.Never
	}
	return q.all[class][0].Arrival
}

// close forgets all of them.
func (q *queue) close() { *q = queue{lineOf: q.lineOf, closed: true} }
