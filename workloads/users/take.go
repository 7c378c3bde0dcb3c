package users

import (
	"time"

	"kvbench/workloads"
	"kvbench/workloads/profile"
)

// Take implements Source.
func (s *Users) Take(now time.Duration) (*workloads.Request, workloads.State, time.Duration) {
	s.advance(now)
	class, found := s.best()
	if !found {
		if s.exhausted() {
			return nil, workloads.Exhausted, workloads.Never
		}
		return nil, workloads.Wait, s.wake()
	}
	slot := s.ready[class].pop().slot
	r := s.request(slot)
	s.taken[class]++
	s.takenTokens[class] += s.writes(r.Own.Tokens)
	s.step(slot, r)
	return r, workloads.Ready, 0
}

// Written implements Source.
func (s *Users) Written(r *workloads.Request) {
	c := r.Origin.(*cursor)
	// Only the request just before the cursor can be waited for: after a new conversation nobody
	// asks for older ones.
	if c.state == blocked && c.seq == r.Seq+1 {
		s.enqueue(slotItem{at: c.arrival, slot: c.slot})
	}
}

// Done implements Source.
func (s *Users) Done(r *workloads.Request, now time.Duration) {
	c := r.Origin.(*cursor)
	if !s.closedLoop || c.state != inFlight || c.seq != r.Seq+1 {
		return
	}
	c.arrival = s.arrivalAfter(c.slot, r.Seq, max(now, r.Arrival))
	s.schedule(slotItem{at: c.arrival, slot: c.slot})
}

// schedule makes a request that may still be asked wait for its arrival.
func (s *Users) schedule(it slotItem) {
	if s.tickets == 0 || s.cursors[it.slot].silent {
		s.cursors[it.slot].state = retired
		return
	}
	if s.closedLoop {
		s.tickets--
	}
	s.cursors[it.slot].state = queued
	s.future.push(it)
}

// advance moves time forward and the users whose request has arrived into the queues.
func (s *Users) advance(now time.Duration) {
	s.now = max(s.now, now)
	if s.cfg.MaxRequests > 0 {
		s.counted.advance(s.now, s)
	}
	for s.future.len() > 0 && s.future.top().at <= s.now {
		s.arrive(s.future.pop())
	}
}

// enqueue puts a user where its next request belongs.
func (s *Users) enqueue(it slotItem) {
	if s.cursors[it.slot].silent {
		s.cursors[it.slot].state = retired
		return
	}
	if it.at <= s.now {
		s.arrive(it)
		return
	}
	s.cursors[it.slot].state = queued
	s.future.push(it)
}

// arrive queues a request whose time has come, unless it lies beyond MaxRequests; so do all later
// ones of that user then.
func (s *Users) arrive(it slotItem) {
	c := s.cursors[it.slot]
	if !s.counted.within(it) {
		c.state = retired
		return
	}
	c.state = queued
	s.ready[c.user.Class].push(it)
}

// best returns the class to serve: the highest priority, among equal ones the earliest arrival,
// then the larger class.
func (s *Users) best() (workloads.Class, bool) {
	best, found := workloads.Class(0), false
	for c := range workloads.Class(workloads.NumClasses) {
		if s.ready[c].len() == 0 {
			continue
		}
		if !found {
			best, found = c, true
			continue
		}
		p, q := s.cfg.Profile.QoS[c].Priority, s.cfg.Profile.QoS[best].Priority
		if p > q || p == q && s.ready[c].top().at <= s.ready[best].top().at {
			best = c
		}
	}
	return best, found
}

// exhausted tells whether no request will ever come again. In closed-loop tickets become requests,
// and requests in flight may hold back others, so that the count of those taken decides in every
// mode.
func (s *Users) exhausted() bool {
	if len(s.cursors) == 0 {
		return true
	}
	total := int64(0)
	for _, n := range s.taken {
		total += n
	}
	return s.cfg.MaxRequests > 0 && total >= s.cfg.MaxRequests
}

// wake returns the time of the next arrival, Never when all users wait for an event or are beyond
// MaxRequests.
func (s *Users) wake() time.Duration {
	if s.future.len() == 0 || !s.counted.within(s.future.top()) {
		return workloads.Never
	}
	return s.future.top().at
}

// request makes the request under a cursor.
func (s *Users) request(slot int32) *workloads.Request {
	c := s.cursors[slot]
	r := &workloads.Request{
		User: c.user.ID, Seq: c.seq, Class: c.user.Class, Arrival: c.arrival,
		Conversation: c.conversation, Turn: c.turn, History: c.history[:len(c.history):len(c.history)],
		ContextTokens:  c.context(c.seq),
		GenerateTokens: c.stream.Between(profile.DrawGenerate, c.seq, max(1, c.user.Generate/4), c.user.Generate),
		Origin:         c,
	}
	r.Kind = s.shape.Kind(r.ContextTokens)
	r.SystemPrompt, r.SystemPromptTokens = s.shape.Prompt(c.stream, c.seq)
	if s.cfg.DecodeOnly {
		r.Own = workloads.Entry{
			Key:    workloads.PopulationKey(c.stream.Between(profile.DrawPopulation, c.seq, 0, s.cfg.Population-1)),
			Tokens: s.cfg.PopulationTokens,
		}
		return r
	}
	r.Own = workloads.Entry{
		Key:    workloads.UserKey(c.user.ID, c.conversation, c.turn),
		Tokens: profile.OwnTokens(r.ContextTokens, r.SystemPromptTokens),
	}
	return r
}

// context draws the context tokens of a user's n-th request.
func (c *cursor) context(n int64) int {
	return c.stream.Between(profile.DrawContext, n, max(1, c.user.Context/4), c.user.Context)
}

// step moves a cursor behind the request just made and puts its user where the next one belongs.
func (s *Users) step(slot int32, r *workloads.Request) {
	c := s.cursors[slot]
	c.seq++
	p := &s.cfg.Profile
	if !s.cfg.MultiTurn || c.turn >= p.MaxTurns || c.stream.Unit(profile.DrawNewConversation, c.seq) < p.NewConversation {
		c.conversation, c.turn, c.history = c.conversation+1, 1, nil
	} else {
		c.turn++
		if !s.cfg.DecodeOnly {
			c.history = append(c.history, r.Own)
		}
	}
	if s.closedLoop {
		c.state = inFlight
		return
	}
	c.arrival = s.arrivalAfter(slot, r.Seq, r.Arrival)
	if s.ordered && c.turn > 1 {
		c.state = blocked
		return
	}
	s.enqueue(slotItem{at: c.arrival, slot: slot})
}

// writes returns the tokens that a request with such an entry writes.
func (s *Users) writes(own int) int64 {
	if s.cfg.DecodeOnly {
		return 0
	}
	return int64(own)
}
