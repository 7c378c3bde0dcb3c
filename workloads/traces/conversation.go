package traces

import (
	"github.com/hashicorp/golang-lru/v2/simplelru"

	"kvbench/workloads"
)

// maxConversations is the number of conversations that a trace keeps, to limit memory. If there are
// more, the least recently used one is dropped, and a later row of it begins a new conversation.
const maxConversations = 10000

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

// newConversations returns an empty list for the given number of live conversations, or
// maxConversations if that is larger.
func newConversations(live int) *simplelru.LRU[string, *conversation] {
	list, _ := simplelru.NewLRU[string, *conversation](max(maxConversations, live), nil) // size > 0
	return list
}

// join makes a request the next turn of the conversation id of its cycle, or the first turn of a new
// conversation, if there is none or it has its maximum of turns. Conversations do not continue in
// another cycle, because keys of another cycle are other entries.
func (t *Trace) join(r *workloads.Request, id string, cycle int) {
	if cycle != t.cycle {
		t.cycle = cycle
		t.conversations.Purge()
	}
	c, ok := t.conversations.Get(id)
	if !ok || len(c.history) >= t.cfg.Profile.MaxTurns {
		c = &conversation{number: r.Conversation}
		t.conversations.Add(id, c)
	}
	r.Origin, r.Conversation, r.Turn = c, c.number, len(c.history)+1
	r.History = c.history[:len(c.history):len(c.history)]
	c.history = append(c.history, r.Own)
}

// conversationOf returns the conversation of a request, nil for none.
func conversationOf(r *workloads.Request) *conversation {
	c, _ := r.Origin.(*conversation)
	return c
}

// Written implements Source: the next turn of the conversation may start, in the order of the rows.
func (t *Trace) Written(r *workloads.Request) {
	if c := conversationOf(r); c != nil {
		t.queue.written(c)
	}
}
