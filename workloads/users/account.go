package users

import (
	"time"

	"kvbench/workloads"
	"kvbench/workloads/profile"
)

// arrivals counts what open-loop users ask for, taken or not, without writing down any of it: a
// second cursor per user walks through time ahead of the one that Take moves. With a limit it stops
// at the N-th arrival and remembers where that was, so that the first N of all users are known. A
// nil one, that of closed-loop users, counts nothing and has no limit.
type arrivals struct {
	next    userHeap // uncounted arrival of each user that asks
	left    int64    // arrivals still to count
	last    userItem // the last one that counts, once left is 0
	offered [workloads.NumClasses]workloads.ClassLoad
}

// Account implements Source. Open-loop users are followed by a second cursor each that runs ahead
// of the first: about 40 ns per arrival since the last call, plus a look at every user. In
// closed-loop a user has one request at most.
func (s *Users) Account(until time.Duration) []workloads.ClassLoad {
	s.accounted = max(s.accounted, s.now, until)
	until = s.accounted
	s.counted.advance(until, s)
	loads := make([]workloads.ClassLoad, workloads.NumClasses)
	for c := range loads {
		loads[c] = s.taken[c]
		if !s.closedLoop {
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
		if s.closedLoop {
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
	return int64(profile.OwnTokens(c.context(n), prefix))
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
		a.next.replaceTop(c.at(s.arrivalAfter(c, c.counted, it.at)))
		c.counted++
	}
}

// within tells whether an arrival that advance has passed counts.
func (a *arrivals) within(it userItem) bool {
	return a == nil || a.left > 0 || !a.last.before(it)
}

// join counts the arrivals of a user from its next request on.
func (a *arrivals) join(c *cursor) {
	if a != nil {
		c.counted = c.seq
		a.next.push(c.at(c.arrival))
	}
}

// leave forgets what a user has asked for and nobody took. Its next arrival is still to be dropped.
func (a *arrivals) leave(c *cursor, s *Users) {
	if a == nil {
		return
	}
	for n := c.seq; n < c.counted; n++ {
		a.offered[c.user.Class].Offered--
		a.offered[c.user.Class].OfferedTokens -= s.ownOf(c, n)
	}
}
