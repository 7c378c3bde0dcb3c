package traces

import (
	"container/list"
	"slices"

	"kvbench/workloads"
)

// maxSessions is the number of live conversations that a trace keeps: the one unused for longest is
// forgotten, and a later row of it starts a new conversation. It bounds memory whatever the input
// holds.
const maxSessions = 10000

// session is a conversation of a trace.
type session struct {
	id           string
	conversation int
	history      []workloads.Entry // elements are shared with requests and only appended to

	// busy: a request of it was handed out, or is about to be, and its entry is not written yet.
	busy     bool
	deferred int // turns that wait for that

	place *list.Element
}

// sessions finds the live conversation of a session id.
type sessions struct {
	byID  map[string]*session
	order *list.List // most recently used first
}

// newSessions knows no conversation.
func newSessions() *sessions {
	return &sessions{byID: map[string]*session{}, order: list.New()}
}

// get returns the live conversation of a session that has room for another turn, or starts one
// numbered conversation.
func (s *sessions) get(id string, conversation, maxTurns int) *session {
	if c, ok := s.byID[id]; ok {
		if len(c.history) < maxTurns {
			s.order.MoveToFront(c.place)
			return c
		}
		s.drop(c)
	}
	if s.order.Len() >= maxSessions {
		s.drop(s.order.Back().Value.(*session))
	}
	c := &session{id: id, conversation: conversation}
	c.place = s.order.PushFront(c)
	s.byID[id] = c
	return c
}

// drop forgets a conversation. Its requests in flight and its deferred turns still hold it.
func (s *sessions) drop(c *session) {
	s.order.Remove(c.place)
	delete(s.byID, c.id)
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
