package traces

import (
	"cmp"
	"slices"
	"time"

	"kvbench/workloads"
	"kvbench/workloads/users"
)

// maxWaiting limits the queued requests to some tens of MB. With more waiting requests, the replay executes the
// most urgent of the oldest ones first.
const maxWaiting = 1 << 16

// queue is the requests that were made and not taken. Each priority is a line in the order of the rows. A
// turn waits in its conversation instead until the entry of the previous turn is written.
type queue struct {
	// The lines, and the line of each class. If rows arrive when they are taken, no request waits and
	// priorities have no effect: then there is one line.
	lines  [workloads.NumClasses][]*workloads.Request
	lineOf [workloads.NumClasses]int

	all    [workloads.NumClasses][]*workloads.Request // by class, including turns that wait in conversations
	closed bool
}

// waiting returns the number of requests, including turns that wait in conversations.
func (q *queue) waiting() (n int) {
	for _, class := range q.all {
		n += len(class)
	}
	return n
}

// order assigns a line to each class by its priority: higher priorities first, equal ones share a line.
func (q *queue) order(p users.Profile, byClass bool) {
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
	c := conversationOf(r)
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

// put adds a request to the line of its class, at the end unless it is a turn that has waited.
func (q *queue) put(r *workloads.Request) {
	line := &q.lines[q.lineOf[r.Class]]
	*line = slices.Insert(*line, place(*line, r), r)
}

// place returns the index of a request in a line in the order of the rows.
func place(line []*workloads.Request, r *workloads.Request) int {
	i, _ := slices.BinarySearchFunc(line, r, func(a, b *workloads.Request) int {
		return cmp.Compare(a.Seq, b.Seq)
	})
	return i
}

// ready reports whether a request does not wait for another one.
func (q *queue) ready() bool {
	return slices.ContainsFunc(q.lines[:], func(l []*workloads.Request) bool { return len(l) > 0 })
}

// take takes the most urgent request that has arrived, the first of its line. Without one it returns when
// the next queued request arrives.
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

// written queues the next turn of a conversation.
func (q *queue) written(c *conversation) {
	if q.closed || len(c.turns) == 0 {
		c.busy = false
		return
	}
	q.put(c.turns[0])
	c.turns = c.turns[1:]
}

// oldest returns the arrival of the first request of a class, or Never.
func (q *queue) oldest(class workloads.Class) time.Duration {
	if len(q.all[class]) == 0 {
		return workloads.Never
	}
	return q.all[class][0].Arrival
}

// close drops all requests.
func (q *queue) close() { *q = queue{lineOf: q.lineOf, closed: true} }
