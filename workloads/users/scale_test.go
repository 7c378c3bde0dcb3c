package users

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/workloads"
)

// drain takes all arrived requests and finishes them at once.
func drainUsers(s *Users, now time.Duration) map[int]int {
	taken := map[int]int{}
	for {
		r, st, _ := s.Take(now)
		if st != workloads.Ready {
			return taken
		}
		taken[r.User]++
		s.Written(r)
		s.Done(r, now)
	}
}

func totals(loads []workloads.ClassLoad) (offered, queued int64) {
	for _, l := range loads {
		offered += l.Offered
		queued += l.Queued
	}
	return offered, queued
}

func TestSetUsersStartsAndStopsUsers(t *testing.T) {
	for _, closedLoop := range []bool{false, true} {
		p := Default()
		s := New(
			Config{Profile: p, Users: Population(p, 5, 4, false), Seed: 5, MultiTurn: true,
				ClosedLoop: closedLoop},
		)
		now := time.Duration(0)
		seen := func(seconds int) map[int]int {
			all := map[int]int{}
			for range seconds * 10 {
				now += 100 * time.Millisecond
				for u, n := range drainUsers(s, now) {
					all[u] += n
				}
			}
			return all
		}
		assert.Len(t, seen(20), 4)
		s.SetUsers(2, now)
		two := seen(20)
		assert.Len(t, two, 2)
		assert.Contains(t, two, 0)
		assert.Contains(t, two, 1)
		s.SetUsers(10, now)
		assert.Len(t, seen(20), 10)
		s.SetUsers(3, now)
		assert.Len(t, seen(20), 3)
		s.SetUsers(10, now)
		assert.Len(t, seen(20), 10, "inactive users come back")
		offered, queued := totals(s.Account(now))
		assert.Zero(t, queued)
		taken := int64(0)
		for _, n := range s.taken {
			taken += n
		}
		assert.Equal(t, taken, offered)
	}
}

func TestUsersWhoLeaveTakeTheirBacklogWithThem(t *testing.T) {
	p := Default()
	s := New(
		Config{Profile: p, Users: Population(p, 5, 10, false), Seed: 5, Overtaking: true,
			MultiTurn: true},
	)
	now := 100 * time.Second
	r, st, _ := s.Take(now)
	require.Equal(t, workloads.Ready, st)
	offered, queued := totals(s.Account(now))
	assert.Equal(t, offered-1, queued)
	s.SetUsers(1, now)
	less, left := totals(s.Account(now))
	assert.Less(t, less, offered)
	mine := 0
	for u := range drainUsers(s, now) {
		mine++
		assert.Equal(t, 0, u)
	}
	assert.LessOrEqual(t, mine, 1)
	_, left2 := totals(s.Account(now))
	assert.Zero(t, left2, "of %d", left)
	s.Written(r)
	s.Done(r, now)
	s.SetUsers(10, now)
	_, back := totals(s.Account(now))
	assert.Zero(t, back, "no user returns with a backlog")
	later, _ := totals(s.Account(now + 10*time.Second))
	assert.Greater(t, later, less)
}

// A user leaves while its turn is being written. If the user comes back, it continues after this turn, and
// not before.
func TestSilencedUserInFlight(t *testing.T) {
	p := Default()
	p.NewConversation = 0
	s := New(Config{Profile: p, Users: Population(p, 5, 1, false), Seed: 5, MultiTurn: true})
	now := 50 * time.Second
	r, st, _ := s.Take(now)
	require.Equal(t, workloads.Ready, st)
	_, st, _ = s.Take(now)
	require.Equal(t, workloads.Wait, st, "ordered: the next turn waits")
	s.SetUsers(0, now)
	s.Written(r)
	_, st, wake := s.Take(now + time.Minute)
	assert.Equal(t, workloads.Wait, st)
	assert.Equal(t, workloads.Never, wake)
	s.SetUsers(1, now+time.Minute)
	_, st, _ = s.Take(now + 2*time.Minute)
	assert.Equal(t, workloads.Ready, st)

	s.SetUsers(0, now+2*time.Minute) // now with the request in flight all the time
	s.SetUsers(1, now+2*time.Minute)
	_, st, _ = s.Take(now + 3*time.Minute)
	assert.Equal(t, workloads.Wait, st)
}
