package users

import (
	"time"

	"kvbench/workloads"
)

// Take implements Source.
func (s *Users) Take(now time.Duration) (*workloads.Request, workloads.State, time.Duration) {
	s.advance(now)
	switch {
	case len(s.ready) > 0:
	// In closed loop tickets become requests, and requests in flight may delay others, so that the
	// number of taken requests decides in every mode.
	case len(s.cursors) == 0 || s.cfg.MaxRequests > 0 && s.requests >= s.cfg.MaxRequests:
		return nil, workloads.Exhausted, workloads.Never
	// All users wait for an event or are beyond MaxRequests.
	case len(s.future) == 0 || !s.counted.within(s.future[0]):
		return nil, workloads.Wait, workloads.Never
	default:
		return nil, workloads.Wait, s.future[0].at
	}
	c := s.ready.Pop().cursor
	r := s.request(c)
	s.requests++
	s.taken[r.Class].Offered++
	if !s.cfg.DecodeOnly {
		s.taken[r.Class].OfferedTokens += int64(r.Own.Tokens)
	}
	s.step(c, r)
	return r, workloads.Ready, 0
}

// Written implements Source.
func (s *Users) Written(r *workloads.Request) {
	c, mine := r.Origin.(*cursor)
	// The cursor can only wait for the request just before it: a new conversation does not need older
	// ones.
	if mine && c.state == blocked && c.seq == r.Seq+1 {
		s.schedule(c)
	}
}

// Done implements Source.
func (s *Users) Done(r *workloads.Request, now time.Duration) {
	c, mine := r.Origin.(*cursor)
	if !mine || !s.cfg.ClosedLoop || c.state != inFlight || c.seq != r.Seq+1 {
		return
	}
	c.arrival = s.arrivalAfter(c, r.Seq, max(now, r.Arrival))
	s.schedule(c)
}

// schedule queues a user for the arrival of its next request, if it may have one.
func (s *Users) schedule(c *cursor) {
	if s.tickets == 0 || c.silent {
		c.state = retired
		return
	}
	if s.cfg.ClosedLoop {
		s.tickets--
	}
	c.state = queued
	s.future.Push(c.at(c.arrival))
}

// advance advances the time and moves users whose request has arrived to the ready heap. If a request is
// beyond MaxRequests, so are all later ones of its user.
func (s *Users) advance(now time.Duration) {
	s.now = max(s.now, now)
	if s.cfg.MaxRequests > 0 {
		s.counted.advance(s.now, s)
	}
	for len(s.future) > 0 && s.future[0].at <= s.now {
		it := s.future.Pop()
		if !s.counted.within(it) {
			it.cursor.state = retired
			continue
		}
		// The highest priority goes first, then the earliest arrival, then the larger class.
		class := it.cursor.user.Class
		it.priority = s.cfg.Profile.QoS[class].Priority
		it.tie -= int64(class) << 32
		s.ready.Push(it)
	}
}

// request makes the request of a cursor.
func (s *Users) request(c *cursor) *workloads.Request {
	least := max(1, c.user.Generate/4)
	r := &workloads.Request{
		User: c.user.ID, Seq: c.seq, Class: c.user.Class, Arrival: c.arrival,
		Conversation: c.conversation, Turn: c.turn,
		History:        c.history[:len(c.history):len(c.history)],
		ContextTokens:  s.context(c, c.seq),
		GenerateTokens: c.stream.Between(DrawGenerate, c.seq, least, c.user.Generate),
		Origin:         c,
	}
	r.Kind = s.shape.Kind(r.ContextTokens)
	r.SystemPrompt, r.SystemPromptTokens = s.shape.Prompt(c.stream, c.seq)
	if s.cfg.DecodeOnly {
		entries := max(1, workloads.PopulationPerUser*len(s.cfg.Users))
		n := c.stream.Between(DrawPopulation, c.seq, 0, entries-1)
		r.Own.Key, r.Own.Tokens = workloads.PopulationKey(n), workloads.PopulationTokens
		return r
	}
	r.Own = workloads.Entry{
		Key:    workloads.UserKey(c.user.ID, c.conversation, c.turn),
		Tokens: OwnTokens(r.ContextTokens, r.SystemPromptTokens),
	}
	if s.cfg.KeepPrompt {
		r.SystemPrompt, r.SystemPromptTokens = s.shape.Prompt(c.stream, c.begun)
	}
	return r
}

// context draws the context tokens of a user's n-th request, at most the window.
func (s *Users) context(c *cursor, n int64) int {
	drawn := c.stream.Between(DrawContext, n, max(1, c.user.Context/4), c.user.Context)
	if s.cfg.Window > 0 {
		drawn = min(drawn, s.cfg.Window)
	}
	return drawn
}

// full reports whether a user's next turn would exceed the window after the one just made.
func (s *Users) full(c *cursor, r *workloads.Request) bool {
	return s.cfg.Window > 0 && !s.cfg.DecodeOnly &&
		c.kept+r.Own.Tokens+s.context(c, c.seq) > s.cfg.Window
}

// step advances a cursor after a request and queues its user for the next one.
func (s *Users) step(c *cursor, r *workloads.Request) {
	c.seq++
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
	if s.cfg.ClosedLoop {
		c.state = inFlight
		return
	}
	c.arrival = s.arrivalAfter(c, r.Seq, r.Arrival)
	if !s.cfg.Overtaking && c.turn > 1 {
		c.state = blocked
		return
	}
	s.schedule(c)
}

// arrivals counts the requests of open-loop users, taken or not, without storing them: a second cursor per
// user runs ahead of the one that Take advances. With a limit it stops at the N-th arrival and keeps it, so
// that the first N of all users are known. Closed-loop users have a nil one, which counts nothing and has
// no limit.
type arrivals struct {
	next    Heap[userItem] // uncounted arrival of each active user
	left    int64          // arrivals still to count
	last    userItem       // the last one that counts, once left is 0
	offered [workloads.NumClasses]workloads.ClassLoad
}

// Account implements Source. For open-loop users it advances the second cursors: about 40 ns per arrival
// since the last call, plus a check of every user. A closed-loop user has at most one request.
func (s *Users) Account(until time.Duration) []workloads.ClassLoad {
	s.accounted = max(s.accounted, s.now, until)
	until = s.accounted
	s.counted.advance(until, s)
	loads := make([]workloads.ClassLoad, workloads.NumClasses)
	for c := range loads {
		loads[c] = s.taken[c]
		if !s.cfg.ClosedLoop {
			loads[c] = s.counted.offered[c]
			loads[c].Queued = loads[c].Offered - s.taken[c].Offered
		}
		loads[c].Oldest = workloads.Never
	}
	for _, c := range s.cursors {
		load := &loads[c.user.Class]
		waiting := (c.state == queued || c.state == blocked) && !c.silent
		if !waiting || c.arrival > until || !s.counted.within(c.at(c.arrival)) {
			continue
		}
		load.Oldest = min(load.Oldest, c.arrival)
		if s.cfg.ClosedLoop {
			load.Queued++
			load.Offered++
			load.OfferedTokens += s.ownOf(c, c.seq)
		}
	}
	return loads
}

// ownOf returns the tokens that the n-th request of a user writes.
func (s *Users) ownOf(c *cursor, n int64) int64 {
	if s.cfg.DecodeOnly {
		return 0
	}
	_, prefix := s.shape.Prompt(c.stream, n)
	return int64(OwnTokens(s.context(c, n), prefix))
}

// advance counts the arrivals up to and including until.
func (a *arrivals) advance(until time.Duration, s *Users) {
	for a != nil && a.left > 0 && len(a.next) > 0 && a.next[0].at <= until {
		it := a.next[0]
		c := it.cursor
		a.offered[c.user.Class].Offered++
		a.offered[c.user.Class].OfferedTokens += s.ownOf(c, c.counted)
		if a.left--; a.left == 0 {
			a.last, a.next = it, nil
			return
		}
		a.next.Replace(c.at(s.arrivalAfter(c, c.counted, it.at)))
		c.counted++
	}
}

// within reports whether an arrival that advance has passed counts.
func (a *arrivals) within(it userItem) bool {
	return a == nil || a.left > 0 || !a.last.Before(it)
}

// join counts the arrivals of a user from its next request on.
func (a *arrivals) join(c *cursor) {
	if a != nil {
		c.counted = c.seq
		a.next.Push(c.at(c.arrival))
	}
}

// leave removes the requests of a user that no worker has taken. The user's next arrival has to be dropped
// separately.
func (a *arrivals) leave(c *cursor, s *Users) {
	if a == nil {
		return
	}
	for n := c.seq; n < c.counted; n++ {
		a.offered[c.user.Class].Offered--
		a.offered[c.user.Class].OfferedTokens -= s.ownOf(c, n)
	}
}
