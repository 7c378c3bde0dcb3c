package traces

import (
	"github.com/hashicorp/golang-lru/v2/simplelru"

	"kvbench/workloads"
)

// maxSessions is the number of live conversations that a trace keeps: the one unused for longest is
// forgotten, and a later row of it starts a new conversation. It bounds memory whatever the input
// holds.
const maxSessions = 10000

// session is a conversation of a trace. Requests in flight and deferred turns still hold one that
// is forgotten.
type session struct {
	conversation int
	history      []workloads.Entry // elements are shared with requests and only appended to

	// busy: a turn may be taken, or was and its entry is not written yet. Those after it wait in
	// turns.
	busy  bool
	turns []*workloads.Request
}

// newSessions knows no conversation. It has room for those that are live at a time.
func newSessions(live int) *simplelru.LRU[string, *session] {
	list, _ := simplelru.NewLRU[string, *session](max(maxSessions, live), nil) // fails for no size
	return list
}

// join makes a request the next turn of a session that has room for another, within its cycle: keys
// of another one are other entries.
func (t *Trace) join(r *workloads.Request, id string, cycle int) {
	if cycle != t.cycle {
		t.cycle = cycle
		t.sessions.Purge()
	}
	c, ok := t.sessions.Get(id)
	if !ok || len(c.history) >= t.cfg.Profile.MaxTurns {
		c = &session{conversation: r.Conversation}
		t.sessions.Add(id, c)
	}
	r.Origin, r.Conversation, r.Turn = c, c.conversation, len(c.history)+1
	r.History = c.history[:len(c.history):len(c.history)]
	c.history = append(c.history, r.Own)
}

// sessionOf returns the conversation of a request, nil for none.
func sessionOf(r *workloads.Request) *session {
	c, _ := r.Origin.(*session)
	return c
}

// Written implements Source: the next turn of the conversation may start, in the order of the rows.
func (t *Trace) Written(r *workloads.Request) {
	if c := sessionOf(r); c != nil {
		t.queue.written(c)
	}
}
