package workloads

import "time"

// Scalable is a Source whose number of users can change while it runs.
type Scalable interface {
	Source
	// SetUsers lets the first n users ask and the others fall silent. A user who leaves takes its waiting requests with it;
	// what is in flight is finished. One who comes, or comes back, begins with a pause to think.
	SetUsers(n int, now time.Duration)
}

var _ Scalable = (*Users)(nil)

// SetUsers implements Scalable. It must not be used with Rate or MaxRequests, which spread one load over all users. Users
// beyond those of the configuration are those that a larger Population has: it is drawn from the seed.
func (s *Users) SetUsers(n int, now time.Duration) {
	s.advance(now)
	if n > len(s.cursors) {
		s.grow(n)
	}
	for i := range s.cursors {
		slot := int32(i)
		switch c := &s.cursors[i]; {
		case i >= n && !c.silent:
			s.silence(slot)
		case i < n && c.silent:
			s.wakeUp(slot)
		}
	}
	s.future.filter(func(it slotItem) bool { return !s.cursors[it.slot].silent })
	for class := range s.ready {
		s.ready[class].filter(func(it slotItem) bool { return !s.cursors[it.slot].silent })
	}
}

// grow adds users, who are silent until they are woken.
func (s *Users) grow(n int) {
	for _, u := range Population(s.cfg.Profile, s.cfg.Seed, n, false)[len(s.cursors):] {
		s.cursors = append(s.cursors, cursor{
			user: u, stream: newStream(s.cfg.Seed, u.ID), conversation: 1, turn: 1, state: retired, silent: true, shadowArrival: Never,
		})
	}
}

// silence takes a user and its backlog away.
func (s *Users) silence(slot int32) {
	c := &s.cursors[slot]
	c.silent = true
	if c.state == queued {
		c.state = retired
	}
	if s.closedLoop {
		return
	}
	s.follow(slot, s.now)
	sum := &s.offered[c.user.Class]
	for n := c.seq; n < c.shadow; n++ {
		sum.Offered--
		sum.OfferedTokens -= s.ownOf(c, n)
	}
	c.shadowArrival = Never
}

// wakeUp lets a user ask from now on. One whose last request is still in flight goes on after it.
func (s *Users) wakeUp(slot int32) {
	c := &s.cursors[slot]
	c.silent = false
	c.arrival = s.arrivalAfter(slot, c.seq-1, s.now)
	c.shadow, c.shadowArrival = c.seq, c.arrival
	if c.state == retired {
		s.schedule(slotItem{at: c.arrival, slot: slot})
	}
}

// filter keeps the items for which keep is true.
func (h *slotHeap) filter(keep func(slotItem) bool) {
	old := h.items
	h.items = old[:0]
	for _, it := range old {
		if keep(it) {
			h.push(it)
		}
	}
}
