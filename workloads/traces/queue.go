package traces

import (
	"cmp"
	"slices"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"kvbench/workloads"
	"kvbench/workloads/users"
)

// maxWaiting limits the requests that have arrived and were not taken, and maxWaitingIDs the blocks of
// their rows, to some 100 MB. Further rows arrive late.
const (
	maxWaiting    = 1 << 18
	maxWaitingIDs = 1 << 23
)

// maxConversations is the number of conversations that a trace keeps, to limit memory. If there are
// more, the least recently used one is dropped, and a later row of it begins a new conversation.
const maxConversations = 10000

// queue holds the requests that have arrived and were not taken. It returns the most urgent request
// first, and the earliest row among requests of one priority. A turn waits in its conversation until the
// entry of the previous turn is written.
type queue struct {
	// priority is 0 for all classes if rows arrive when they are taken: then no request waits.
	priority [workloads.NumClasses]int
	ready    users.Heap[waiting]
	// all has the requests by class in the order of their rows, including turns that wait in
	// conversations.
	all [workloads.NumClasses][]*workloads.Request
	ids int // blocks of the rows of all requests

	conversations *simplelru.LRU[string, *conversation] // by ID
	cycle         int                                   // cycle of the rows in conversations
}

// arrived is the Origin of a request: its row, with the blocks until the request is taken.
type arrived struct {
	traceRow
	conversation *conversation // nil for none
}

// conversation holds the turns of one session of a trace. Requests in flight and deferred turns may
// still refer to a dropped conversation.
type conversation struct {
	number int
	// history has the entries of all turns so far. Requests share the elements, so the slice is only
	// appended to.
	history []workloads.Entry
	// busy: a turn is queued, or a taken turn has not written its entry yet.
	busy bool
	// turns are the later turns. They wait while the conversation is busy.
	turns []*workloads.Request
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

// len returns the number of requests, including turns that wait in conversations.
func (q *queue) len() (n int) {
	for _, class := range q.all {
		n += len(class)
	}
	return n
}

// full reports whether no further row may arrive.
func (q *queue) full() bool { return q.len() >= maxWaiting || q.ids > maxWaitingIDs }

// join makes a request the next turn of the conversation id of its cycle, or the first turn of a new
// conversation, if there is none or it has its maximum of turns. Conversations do not continue in
// another cycle, because keys of another cycle are other entries.
func (q *queue) join(r *workloads.Request, at *arrived, id string, maxTurns int) {
	if at.cycle != q.cycle {
		q.cycle = at.cycle
		q.conversations.Purge()
	}
	c, ok := q.conversations.Get(id)
	if !ok || len(c.history) >= maxTurns {
		c = &conversation{number: r.Conversation}
		q.conversations.Add(id, c)
	}
	at.conversation, r.Conversation, r.Turn = c, c.number, len(c.history)+1
	r.History = c.history[:len(c.history):len(c.history)]
	c.history = append(c.history, r.Own)
}

// add queues the request of the next row, or adds it to its busy conversation.
func (q *queue) add(r *workloads.Request, at *arrived, overtaking bool) {
	q.all[r.Class] = append(q.all[r.Class], r)
	q.ids += len(at.Blocks)
	switch c := at.conversation; {
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

// take removes and returns the most urgent request that is ready. There must be one.
func (q *queue) take() *workloads.Request {
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
	q.ids -= len(r.Origin.(*arrived).Blocks)
	return r
}

// written queues the next turn of a request's conversation, after the entry of the request was written.
func (q *queue) written(r *workloads.Request) {
	at, mine := r.Origin.(*arrived)
	if !mine || at.conversation == nil {
		return
	}
	c := at.conversation
	if len(c.turns) == 0 {
		c.busy = false
		return
	}
	q.put(c.turns[0])
	c.turns = c.turns[1:]
}
