package traces

import (
	"container/list"

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
