package traces

import (
	"cmp"
	"slices"

	"kvbench/workloads"
	"kvbench/workloads/users"
)

// maxWaiting limits the queued requests, to some tens of MB. If more requests wait, the order of
// priority applies only to the oldest maxWaiting ones.
const maxWaiting = 1 << 16

// queue holds the requests that were made and not taken. It returns the most urgent request first, and
// the earliest row among requests of one priority. A turn waits in its conversation until the entry of
// the previous turn is written.
type queue struct {
	// priority is 0 for all classes if rows arrive when they are taken: then no request waits.
	priority [workloads.NumClasses]int
	ready    users.Heap[waiting]
	all      [workloads.NumClasses][]*workloads.Request // by class, including turns that wait in conversations
	closed   bool
}

// waiting is a request with its priority.
type waiting struct {
	*workloads.Request
	priority int
}

// Before orders by priority and row.
func (a waiting) Before(b waiting) bool {
	return cmp.Or(cmp.Compare(b.priority, a.priority), cmp.Compare(a.Seq, b.Seq)) < 0
}

// waiting returns the number of requests, including turns that wait in conversations.
func (q *queue) waiting() (n int) {
	for _, class := range q.all {
		n += len(class)
	}
	return n
}

// add queues the request of the next row, or adds it to its busy conversation.
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

// put makes a request ready to be taken.
func (q *queue) put(r *workloads.Request) { q.ready.Push(waiting{r, q.priority[r.Class]}) }

// take removes and returns the most urgent request, nil if there is none.
func (q *queue) take() *workloads.Request {
	if len(q.ready) == 0 {
		return nil
	}
	r := q.ready.Pop().Request
	all := &q.all[r.Class]
	at, _ := slices.BinarySearchFunc(*all, r, func(a, b *workloads.Request) int {
		return cmp.Compare(a.Seq, b.Seq)
	})
	if at == 0 {
		*all = (*all)[1:]
	} else {
		*all = slices.Delete(*all, at, at+1)
	}
	return r
}

// written queues the next turn of a conversation, after the entry of the previous turn was written.
func (q *queue) written(c *conversation) {
	if q.closed || len(c.turns) == 0 {
		c.busy = false
		return
	}
	q.put(c.turns[0])
	c.turns = c.turns[1:]
}
