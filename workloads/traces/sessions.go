package traces

import (
	"slices"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"kvbench/workloads"
)

// maxSessions is the number of live conversations that a trace keeps: the one unused for longest is
// forgotten, and a later row of it starts a new conversation. It bounds memory whatever the input
// holds.
const maxSessions = 10000

// session is a conversation of a trace.
type session struct {
	conversation int
	history      []workloads.Entry // elements are shared with requests and only appended to

	// busy: a request of it was handed out, or is about to be, and its entry is not written yet.
	busy     bool
	deferred int // turns that wait for that
}

// sessions are the live conversations by their ids.
type sessions struct {
	*simplelru.LRU[string, *session]
}

// newSessions knows no conversation.
func newSessions() sessions {
	live, _ := simplelru.NewLRU[string, *session](maxSessions, nil) // fails for no size only
	return sessions{live}
}

// get returns the live conversation of a session that has room for another turn, or starts one
// numbered conversation. Requests in flight and deferred turns still hold one that is forgotten.
func (s sessions) get(id string, conversation, maxTurns int) *session {
	c, ok := s.Get(id)
	if !ok || len(c.history) >= maxTurns {
		c = &session{conversation: conversation}
		s.Add(id, c)
	}
	return c
}

// join makes a request the next turn of a session, within its cycle: keys of another one are other
// entries.
func (t *Trace) join(r *workloads.Request, session string, cycle int) {
	if cycle != t.cycle {
		t.cycle, t.sessions = cycle, newSessions()
	}
	c := t.sessions.get(session, r.Conversation, t.cfg.Profile.MaxTurns)
	r.Origin, r.Conversation, r.Turn = c, c.conversation, len(c.history)+1
	r.History = c.history[:len(c.history):len(c.history)]
	c.history = append(c.history, r.Own)
}

// sessionOf returns the conversation of a request, nil for none.
func sessionOf(r *workloads.Request) *session {
	c, _ := r.Origin.(*session)
	return c
}

// maxDeferred bounds the turns that wait for their predecessors; beyond it the replay waits as a
// whole.
const maxDeferred = 1024

// postpone lets a turn wait for the entry of its predecessor.
func (t *Trace) postpone(r *workloads.Request, c *session) {
	c.deferred++
	t.deferred = append(t.deferred, r)
}

// takeFreed takes the earliest deferred turn that may start. Deferred turns are older than every
// row not read yet, and in order, so that the first one of a session is the one to go on with.
func (t *Trace) takeFreed() *workloads.Request {
	if t.freed == 0 {
		return nil
	}
	for i, r := range t.deferred {
		if c := sessionOf(r); !c.busy {
			t.deferred = slices.Delete(t.deferred, i, i+1)
			c.deferred--
			t.freed--
			return r
		}
	}
	return nil
}

// Written implements Source: the next turn of the conversation may start, in the order of the rows.
func (t *Trace) Written(r *workloads.Request) {
	c := sessionOf(r)
	if c == nil {
		return
	}
	c.busy = false
	if c.deferred > 0 {
		t.freed++
	}
}
