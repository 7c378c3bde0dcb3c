package workloads

import "time"

// Account implements Source. Open-loop users are followed by a second cursor each that runs ahead of the first: about 40 ns
// per arrival since the last call, plus a look at every user. In closed-loop a user has one request at most.
func (s *Users) Account(until time.Duration) []ClassLoad {
	s.accounted = max(s.accounted, s.now, until)
	until = s.accounted
	if s.first != nil {
		s.first.advance(until, s.arrivalAfter)
	}
	loads := make([]ClassLoad, NumClasses)
	for c := range loads {
		loads[c].Oldest = Never
	}
	for i := range s.cursors {
		c := s.cursors[i]
		load := &loads[c.user.Class]
		if !s.closedLoop {
			s.follow(int32(i), until)
		}
		waiting := (c.state == queued || c.state == blocked) && !c.silent
		if !waiting || c.arrival > until || !s.first.within(slotItem{at: c.arrival, slot: int32(i)}) {
			continue
		}
		load.Oldest = min(load.Oldest, c.arrival)
		if s.closedLoop {
			load.Queued++
			load.OfferedTokens += s.ownOf(c, c.seq)
		}
	}
	for c := range loads {
		load := &loads[c]
		if s.closedLoop {
			load.Offered = s.taken[c] + load.Queued
			load.OfferedTokens += s.takenTokens[c]
			continue
		}
		load.Offered, load.OfferedTokens = s.offered[c].Offered, s.offered[c].OfferedTokens
		load.Queued = load.Offered - s.taken[c]
	}
	return loads
}

// follow moves the shadow cursor of a user to a time and counts what it passes.
func (s *Users) follow(slot int32, until time.Duration) {
	c := s.cursors[slot]
	sum := &s.offered[c.user.Class]
	for c.shadowArrival <= until && s.first.within(slotItem{at: c.shadowArrival, slot: slot}) {
		sum.Offered++
		sum.OfferedTokens += s.ownOf(c, c.shadow)
		c.shadowArrival = s.arrivalAfter(slot, c.shadow, c.shadowArrival)
		c.shadow++
	}
}

// ownOf returns the tokens that the n-th request of a user writes.
func (s *Users) ownOf(c *cursor, n int64) int64 {
	if s.cfg.DecodeOnly {
		return 0
	}
	_, prefix := s.shape.prompt(c.stream, n)
	return int64(ownTokens(c.context(n), prefix))
}
