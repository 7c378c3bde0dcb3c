package users

import (
	"slices"
	"time"

	"kvbench/workloads"
)

// Take implements Source.
func (s *Users) Take(now time.Duration) (*workloads.Request, workloads.State, time.Duration) {
	s.advance(now)
	switch {
	case len(s.queries) > 0:
		q := s.queries[0]
		s.queries = s.queries[1:]
		s.taken[q.Class]++
		return q, workloads.Ready, 0
	case len(s.ready) > 0:
	// In closed loop requests in flight may delay other arrivals, so in every mode the number of taken
	// requests decides.
	case len(s.cursors) == 0 || s.cfg.MaxRequests > 0 && s.requests >= s.cfg.MaxRequests:
		return nil, workloads.Exhausted, workloads.Never
	case len(s.future) == 0: // all users wait for an event, or MaxRequests is reached
		return nil, workloads.Wait, workloads.Never
	default:
		return nil, workloads.Wait, s.future[0].at
	}
	c := s.ready.Pop().cursor
	r := s.request(c)
	s.retrieve(c, r)
	s.requests++
	s.taken[r.Class]++
	s.step(c, r)
	return r, workloads.Ready, 0
}

// Written implements Source.
func (s *Users) Written(r *workloads.Request) {
	// The cursor waits only for the request just before it: a new conversation needs no older request.
	if c, mine := r.Origin.(*cursor); mine && !s.cfg.ClosedLoop && c.busy && c.seq == r.Seq+1 {
		c.busy = false
		s.queue(c)
	}
}

// Done implements Source.
func (s *Users) Done(r *workloads.Request, now time.Duration) {
	c, mine := r.Origin.(*cursor)
	if mine && s.cfg.ClosedLoop && c.busy && c.seq == r.Seq+1 {
		c.busy = false
		s.schedule(c, s.arrivalAfter(c, r.Seq, max(now, r.Arrival)))
	}
}

// schedule makes a user's next request arrive at a time, if the user may have another request.
func (s *Users) schedule(c *cursor, at time.Duration) {
	if c.silent || s.left == 0 {
		return
	}
	if s.cfg.ClosedLoop {
		s.left--
	}
	s.future.Push(userItem{at: at, tie: int64(c.slot), cursor: c})
}

// advance advances the time and offers the requests that have arrived. In open loop the first
// MaxRequests arrivals of all users are offered.
func (s *Users) advance(now time.Duration) {
	s.now = max(s.now, now)
	for len(s.future) > 0 && s.future[0].at <= s.now {
		it := s.future[0]
		c, n := it.cursor, it.cursor.seq+int64(len(it.cursor.arrived))
		s.offer(c, n, 1)
		c.arrived = append(c.arrived, it.at)
		switch {
		case s.cfg.ClosedLoop: // schedule has already decremented left
			s.future.Pop()
		case s.left == 1:
			s.left, s.future = 0, nil
		default:
			s.left--
			it.at = s.arrivalAfter(c, n, it.at)
			s.future.Replace(it)
		}
		if len(c.arrived) == 1 {
			s.queue(c)
		}
	}
}

// queue makes a user ready if its next request has arrived and the user is not busy.
func (s *Users) queue(c *cursor) {
	if c.busy || len(c.arrived) == 0 {
		return
	}
	// The highest priority goes first, then the earliest arrival, then the larger class.
	class := c.user.Class
	s.ready.Push(userItem{priority: s.cfg.Profile.QoS[class].Priority, at: c.arrived[0],
		tie: int64(c.slot) - int64(class)<<32, cursor: c})
}

// offer counts the n-th request of a user (by is 1), or takes it back (by is -1).
func (s *Users) offer(c *cursor, n, by int64) {
	load := &s.offered[c.user.Class]
	load.Offered += by
	if !s.cfg.DecodeOnly {
		_, prefix := s.cfg.Profile.Prompt(c.stream, n)
		load.OfferedTokens += by * int64(OwnTokens(s.context(c, n), prefix))
	}
}

// Account implements Source. It takes about 40 ns per arrival since the last call, plus a check of
// every user.
func (s *Users) Account(until time.Duration) []workloads.ClassLoad {
	s.advance(until)
	loads := slices.Clone(s.offered[:])
	for c := range loads {
		loads[c].Queued = loads[c].Offered - s.taken[c]
		loads[c].Oldest = workloads.Never
	}
	for _, c := range s.cursors {
		if load := &loads[c.user.Class]; len(c.arrived) > 0 {
			load.Oldest = min(load.Oldest, c.arrived[0])
		}
	}
	for _, q := range s.queries {
		loads[q.Class].Oldest = min(loads[q.Class].Oldest, q.Arrival)
	}
	return loads
}

// request returns the next request of a cursor.
func (s *Users) request(c *cursor) *workloads.Request {
	least := max(1, c.user.Generate/4)
	r := &workloads.Request{
		User: c.user.ID, Seq: c.seq, Class: c.user.Class, Arrival: c.arrived[0],
		Conversation: c.conversation, Turn: c.turn,
		History:        c.history[:len(c.history):len(c.history)],
		ContextTokens:  s.context(c, c.seq),
		GenerateTokens: c.stream.Between(DrawGenerate, c.seq, least, c.user.Generate),
		Origin:         c,
	}
	r.Kind = s.cfg.Profile.Kind(r.ContextTokens)
	r.SystemPrompt, r.SystemPromptTokens = s.cfg.Profile.Prompt(c.stream, c.seq)
	if s.cfg.DecodeOnly {
		entries := max(1, workloads.PopulationPerUser*len(s.cfg.Users))
		n := c.stream.Between(DrawPopulation, c.seq, 0, entries-1)
		r.Kind = workloads.DecodeOnly
		r.Own = workloads.Entry{Key: workloads.PopulationKey(n), Tokens: workloads.PopulationTokens}
		return r
	}
	r.Own = workloads.Entry{
		Key:    workloads.UserKey(c.user.ID, c.conversation, c.turn),
		Tokens: OwnTokens(r.ContextTokens, r.SystemPromptTokens),
	}
	if s.cfg.KeepPrompt {
		r.SystemPrompt, r.SystemPromptTokens = s.cfg.Profile.Prompt(c.stream, c.begun)
	}
	return r
}

// context returns the context of a user's n-th request in tokens, at most the window.
func (s *Users) context(c *cursor, n int64) int {
	drawn := c.stream.Between(DrawContext, n, max(1, c.user.Context/4), c.user.Context)
	if s.cfg.Window > 0 {
		drawn = min(drawn, s.cfg.Window)
	}
	return drawn
}

// full reports whether the next turn of a user, after the request r, would exceed the window.
func (s *Users) full(c *cursor, r *workloads.Request) bool {
	return s.cfg.Window > 0 && !s.cfg.DecodeOnly &&
		c.kept+r.Own.Tokens+s.context(c, c.seq) > s.cfg.Window
}

// step advances a cursor after a request. Before the next turn a user waits for the request's entry, or
// in closed loop for its completion.
func (s *Users) step(c *cursor, r *workloads.Request) {
	c.seq++
	if len(c.arrived) > 1 {
		c.arrived = c.arrived[1:]
	} else {
		c.arrived = c.arrived[:0] // keep its memory
	}
	p := &s.cfg.Profile
	if s.cfg.KeepPrompt && c.turn == 1 {
		c.kept = r.SystemPromptTokens
	}
	ends := c.stream.Unit(DrawNewConversation, c.seq) < p.NewConversation
	if ends || !s.cfg.MultiTurn || c.turn >= p.MaxTurns || s.full(c, r) {
		c.conversation, c.turn, c.history, c.kept = c.conversation+1, 1, nil, 0
		c.begun = c.seq
	} else {
		c.turn++
		if !s.cfg.DecodeOnly {
			c.history = append(c.history, r.Own)
			c.kept += r.Own.Tokens
		}
	}
	c.busy = s.cfg.ClosedLoop || !s.cfg.Overtaking && c.turn > 1
	s.queue(c)
}
