package users

import (
	"time"

	"kvbench/workloads/profile"
)

// SetUsers implements Scalable. It must not be used with Rate or MaxRequests, which spread one load
// over all users. Users beyond those of the configuration are those that a larger Population has:
// it is drawn from the seed.
func (s *Users) SetUsers(n int, now time.Duration) {
	s.advance(now)
	s.counted.advance(s.now, s)
	if n > len(s.cursors) {
		s.grow(n)
	}
	for i := range s.cursors {
		slot := int32(i)
		switch c := s.cursors[i]; {
		case i >= n && !c.silent:
			s.silence(slot)
		case i < n && c.silent:
			s.wakeUp(slot)
		}
	}
	asks := func(it slotItem) bool { return !s.cursors[it.slot].silent }
	s.future.filter(asks)
	for class := range s.ready {
		s.ready[class].filter(asks)
	}
	if s.counted != nil {
		s.counted.next.filter(asks)
	}
}

// grow adds users, who are silent until they are woken.
func (s *Users) grow(n int) {
	for _, u := range Population(s.cfg.Profile, s.cfg.Seed, n, false)[len(s.cursors):] {
		s.cursors = append(s.cursors, &cursor{
			slot: int32(len(s.cursors)), user: u, stream: profile.NewStream(s.cfg.Seed, u.ID), conversation: 1, turn: 1, state: retired, silent: true,
		})
	}
}

// silence takes a user and its backlog away.
func (s *Users) silence(slot int32) {
	c := s.cursors[slot]
	c.silent = true
	if c.state == queued {
		c.state = retired
	}
	s.counted.leave(c, s)
}

// wakeUp lets a user ask from now on. One whose last request is still in flight goes on after it.
func (s *Users) wakeUp(slot int32) {
	c := s.cursors[slot]
	c.silent = false
	c.arrival = s.arrivalAfter(slot, c.seq-1, s.now)
	s.counted.join(c)
	if c.state == retired {
		s.schedule(slotItem{at: c.arrival, slot: slot})
	}
}
