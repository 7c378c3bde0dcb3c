package users

import (
	"container/heap"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/workloads"
	"kvbench/workloads/model"
)

// pending is a request in flight in a simulation.
type pending struct {
	at  time.Duration
	run func()
}

type agenda []pending

func (a agenda) Len() int           { return len(a) }
func (a agenda) Less(i, j int) bool { return a[i].at < a[j].at }
func (a agenda) Swap(i, j int)      { a[i], a[j] = a[j], a[i] }
func (a *agenda) Push(x any)        { *a = append(*a, x.(pending)) }
func (a *agenda) Pop() any {
	last := (*a)[len(*a)-1]
	*a = (*a)[:len(*a)-1]
	return last
}

// simulate serves a source with workers under virtual time until stop says so or the source is
// exhausted.
func simulate(
	s workloads.Source,
	workers int,
	service func(*workloads.Request) time.Duration,
	stop func(now time.Duration, r *workloads.Request) bool,
) {
	var events agenda
	now, idle := time.Duration(0), workers
	for {
		wake := workloads.Never
		for idle > 0 {
			r, st, at := s.Take(now)
			if st == workloads.Exhausted && len(events) == 0 {
				return
			}
			if st != workloads.Ready {
				wake = at
				break
			}
			if stop(now, r) {
				return
			}
			idle--
			written := now + service(r)
			done := written + service(r)
			heap.Push(&events, pending{written, func() { s.Written(r) }})
			heap.Push(&events, pending{done, func() { s.Done(r, done); idle++ }})
		}
		if len(events) == 0 && wake == workloads.Never {
			return
		}
		if len(events) > 0 {
			wake = min(wake, events[0].at)
		}
		now = max(now, wake)
		for len(events) > 0 && events[0].at <= now {
			heap.Pop(&events).(pending).run()
		}
	}
}

// digests returns a hash of the first turns of each user.
func digests(
	t *testing.T,
	cfg Config,
	turns, workers int,
	service func(*workloads.Request) time.Duration,
) []string {
	t.Helper()
	planner := workloads.Planner{Sizer: model.Sizer{BytesPerToken: 131072}, Batched: true}
	sums := make([]string, len(cfg.Users))
	complete := 0
	hashes := make([]func(string), len(cfg.Users))
	for i := range hashes {
		h := sha256.New()
		hashes[i] = func(line string) {
			h.Write([]byte(line))
			sums[i] = fmt.Sprintf("%x", h.Sum(nil))
		}
	}
	simulate(New(cfg), workers, service, func(_ time.Duration, r *workloads.Request) bool {
		if r.Seq < int64(turns) {
			for _, op := range planner.Plan(nil, r) {
				hashes[r.User](
					fmt.Sprintln(r.User, r.Turn, r.Kind, op.Kind, op.Key, op.Bytes, op.Times),
				)
			}
		}
		if r.Seq == int64(turns)-1 {
			complete++
		}
		return complete == len(cfg.Users)
	})
	require.Equal(t, len(cfg.Users), complete)
	return sums
}

// TestDigest: the requests of a user do not depend on the times of service, the workers or the mode.
func TestDigest(t *testing.T) {
	p := Default()
	cfg := Config{
		Profile:       p,
		Seed:          42,
		Users:         Population(p, 42, 40, true),
		MultiTurn:     true,
		PrefixCaching: true,
	}
	rng := rand.New(rand.NewPCG(1, 2))
	random := func(*workloads.Request) time.Duration {
		return time.Duration(rng.Int64N(int64(50 * time.Millisecond)))
	}
	byLength := func(r *workloads.Request) time.Duration {
		return time.Duration(r.ContextTokens) * time.Microsecond
	}
	brief := func(*workloads.Request) time.Duration { return 20 * time.Microsecond }
	want := digests(t, cfg, 20, 40, func(*workloads.Request) time.Duration { return 0 })
	overtaking := cfg
	overtaking.Overtaking = true
	closed := cfg
	closed.ClosedLoop = true
	for name, got := range map[string][]string{
		"random times":            digests(t, cfg, 20, 40, random),
		"large entries take long": digests(t, cfg, 20, 30, byLength),
		"few workers":             digests(t, cfg, 20, 2, brief),
		"overtaking":              digests(t, overtaking, 20, 40, random),
		"closed-loop":             digests(t, closed, 20, 40, random),
	} {
		assert.Equal(t, want, got, name)
	}
	cfg.Seed++
	assert.NotEqual(t, want, digests(t, cfg, 20, 40, random))
}
