package traces

import (
	"cmp"
	"slices"

	"kvbench/workloads"
	"kvbench/workloads/users"
)

// maxWaiting limits the queued requests to some tens of MB. With more waiting requests, the replay executes the
// most urgent of the oldest ones first.
const maxWaiting = 1 << 16

// queue is the requests that were made and not taken: the most urgent one goes first, and of equal ones the
// first row. A turn waits in its conversation instead until the entry of the previous turn is written.
type queue struct {
	// If rows arrive when they are taken, no request waits and priorities have no effect: then all are 0.
	priority [workloads.NumClasses]int
	ready    users.Heap[waiting]
	all      [workloads.NumClasses][]*workloads.Request // by class, including turns that wait in conversations
	closed   bool
}

// waiting is a request in the order of the queue.
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

// put makes a request ready.
func (q *queue) put(r *workloads.Request) { q.ready.Push(waiting{r, q.priority[r.Class]}) }

// take takes the most urgent request, nil without one.
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

// written queues the next turn of a conversation.
func (q *queue) written(c *conversation) {
	if q.closed || len(c.turns) == 0 {
		c.busy = false
		return
	}
	q.put(c.turns[0])
	c.turns = c.turns[1:]
}
