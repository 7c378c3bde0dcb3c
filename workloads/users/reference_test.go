package users

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"kvbench/workloads"
)

// reference is a naive Users. It writes every request up to a horizon into a list, and searches the list
// for everything. It shares only the draws with Users.
type reference struct {
	cfg    Config
	closed bool
	all    []*refRequest   // in no order
	users  [][]*refRequest // by user, in order of seq
}

type refRequest struct {
	user, seq              int
	class                  workloads.Class
	arrival                time.Duration
	conversation, turn     int
	own, context, generate int
	history                []workloads.Entry
	// arrived: it has an arrival time (closed-loop: once its predecessor is done)
	arrived, taken, written bool
}

func newReference(cfg Config, perUser int) *reference {
	ref := &reference{cfg: cfg, closed: cfg.ClosedLoop && cfg.Rate == 0}
	p := cfg.Profile
	for i, u := range cfg.Users {
		s := NewStream(cfg.Seed, u.ID)
		var list []*refRequest
		at := time.Duration(0)
		conversation, turn := 0, 0
		var history []workloads.Entry
		for n := range perUser {
			at = ref.after(i, n, at)
			if n == 0 || !cfg.MultiTurn || turn == p.MaxTurns ||
				s.Unit(DrawNewConversation, int64(n)) < p.NewConversation {
				conversation, turn, history = conversation+1, 0, nil
			}
			turn++
			r := &refRequest{
				user:         i,
				seq:          n,
				class:        u.Class,
				arrival:      at,
				conversation: conversation,
				turn:         turn,
				context:      s.Between(DrawContext, int64(n), max(1, u.Context/4), u.Context),
				generate: s.Between(DrawGenerate, int64(n), max(1, u.Generate/4),
					u.Generate),
				history: slices.Clone(history),
				arrived: !ref.closed || n == 0,
			}
			r.own = r.context
			if cfg.PrefixCaching && s.Unit(DrawPromptUse, int64(n)) < p.SystemPromptShare {
				last := len(p.SystemPromptTokens) - 1
				which := s.Between(DrawPromptWhich, int64(n), 0, last)
				r.own = max(1, r.context-p.SystemPromptTokens[which])
			}
			if !cfg.DecodeOnly {
				history = append(history, workloads.Entry{
					Key: workloads.UserKey(u.ID, conversation, turn), Tokens: r.own})
			}
			list = append(list, r)
		}
		ref.users = append(ref.users, list)
		ref.all = append(ref.all, list...)
	}
	if cfg.MaxRequests > 0 && !ref.closed {
		slices.SortFunc(ref.all, func(a, b *refRequest) int {
			return cmp.Or(cmp.Compare(a.arrival, b.arrival), cmp.Compare(a.user, b.user))
		})
		ref.all = ref.all[:min(len(ref.all), int(cfg.MaxRequests))]
		for i := range ref.users {
			ref.users[i] = slices.DeleteFunc(ref.users[i],
				func(r *refRequest) bool { return !slices.Contains(ref.all, r) })
		}
	}
	return ref
}

// after returns the arrival of a user's request n. at is the arrival of the request before (closed-loop:
// its end).
func (ref *reference) after(user, n int, at time.Duration) time.Duration {
	u := ref.cfg.Users[user]
	s := NewStream(ref.cfg.Seed, u.ID)
	users := float64(len(ref.cfg.Users))
	switch {
	case ref.cfg.Rate > 0 && ref.cfg.ConstantRate:
		return time.Duration((float64(user) + float64(n)*users) * 1e9 / ref.cfg.Rate)
	case ref.cfg.Rate > 0:
		return at + time.Duration(s.Exponential(DrawGap, int64(n), users/ref.cfg.Rate)*1e9)
	}
	return at + time.Duration(u.Think*s.Uniform(DrawGap, int64(n), 0.8, 1.2)*1e9)
}

// next returns the request that a user must start next, nil if there is none or it may not start yet.
func (ref *reference) next(user int) *refRequest {
	list := ref.users[user]
	i := slices.IndexFunc(list, func(r *refRequest) bool { return !r.taken })
	if i < 0 || !list[i].arrived {
		return nil
	}
	ordered := !ref.cfg.Overtaking && !ref.cfg.DecodeOnly
	if ordered && list[i].turn > 1 && !list[i-1].written {
		return nil
	}
	return list[i]
}

func (ref *reference) take(now time.Duration) (best *refRequest, wake time.Duration) {
	wake = workloads.Never
	priority := func(r *refRequest) int { return ref.cfg.Profile.QoS[r.class].Priority }
	for user := range ref.users {
		r := ref.next(user)
		if r == nil {
			continue
		}
		if r.arrival > now {
			wake = min(wake, r.arrival)
			continue
		}
		if best == nil ||
			cmp.Or(cmp.Compare(priority(r), priority(best)), cmp.Compare(best.arrival, r.arrival),
				cmp.Compare(r.class, best.class), cmp.Compare(best.user, r.user)) > 0 {
			best = r
		}
	}
	if best != nil {
		best.taken = true
	}
	return best, wake
}

func (ref *reference) done(r *refRequest, now time.Duration) {
	if ref.closed && r.seq+1 < len(ref.users[r.user]) {
		next := ref.users[r.user][r.seq+1]
		next.arrived, next.arrival = true, ref.after(r.user, r.seq+1, now)
	}
}

func (ref *reference) account(until time.Duration) []workloads.ClassLoad {
	loads := make([]workloads.ClassLoad, workloads.NumClasses)
	for c := range loads {
		loads[c].Oldest = workloads.Never
	}
	for _, r := range ref.all {
		if !r.arrived || r.arrival > until {
			continue
		}
		l := &loads[r.class]
		l.Offered++
		if !ref.cfg.DecodeOnly {
			l.OfferedTokens += int64(r.own)
		}
		if !r.taken {
			l.Queued++
			l.Oldest = min(l.Oldest, r.arrival)
		}
	}
	return loads
}

// randomConfig draws a load, small enough for the reference.
func randomConfig(rng *rand.Rand) Config {
	p := Default()
	p.NewConversation = rng.Float64()
	p.MaxTurns = 1 + rng.IntN(6)
	if rng.IntN(4) == 0 {
		p.QoS[workloads.Batch].Priority = 2 + rng.IntN(
			2,
		) // two classes share a priority, or have another order
	}
	if rng.IntN(3) == 0 {
		p.SystemPromptTokens = []int{30000} // longer than any context: an entry still has a token
	}
	flip := func() bool { return rng.IntN(2) == 0 }
	cfg := Config{Profile: p, Seed: rng.Uint64(), ClosedLoop: flip(), Overtaking: flip(),
		MultiTurn: rng.IntN(4) > 0, PrefixCaching: flip(), DecodeOnly: rng.IntN(5) == 0}
	cfg.Users = Population(p, cfg.Seed, 1+rng.IntN(12), flip())
	for i := range cfg.Users {
		cfg.Users[i].ID += 3 // ids need not be indices
	}
	if rng.IntN(3) == 0 {
		cfg.Rate, cfg.ConstantRate = 1+50*rng.Float64(), flip()
	}
	if flip() && (!cfg.ClosedLoop || cfg.Rate > 0) {
		cfg.MaxRequests = 1 + rng.Int64N(60)
	}
	return cfg
}

// TestUsersAgainstReference runs random loads under virtual time on random numbers of workers with
// random service times, and compares every answer of the source with the naive one.
func TestUsersAgainstReference(t *testing.T) {
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 1))
		cfg := randomConfig(rng)
		compareWithReference(t, cfg, rng)
		if t.Failed() {
			t.Fatalf("seed %d: %+v", seed, cfg)
		}
	}
}

func compareWithReference(t *testing.T, cfg Config, rng *rand.Rand) {
	// A user makes at most 150 requests in that time: 0.08 s apart.
	const perUser, horizon = 160, 12 * time.Second
	if cfg.Rate > float64(5*len(cfg.Users)) {
		cfg.Rate = float64(5 * len(cfg.Users))
	}
	src, ref := New(cfg), newReference(cfg, perUser)
	type job struct {
		r             *workloads.Request
		ref           *refRequest
		written, done time.Duration
		wrote         bool
	}
	var jobs []*job
	workers := 1 + rng.IntN(20)
	service := []time.Duration{
		0, time.Millisecond, 100 * time.Millisecond, 3 * time.Second,
	}[rng.IntN(4)]
	random := func() time.Duration {
		if service == 0 {
			return 0
		}
		return time.Duration(rng.Int64N(int64(service)))
	}
	now, total := time.Duration(0), int64(0)
	for now <= horizon {
		wake := workloads.Never
		for len(jobs) < workers {
			want, refWake := ref.take(now)
			r, st, at := src.Take(now)
			if want == nil {
				require.Nil(t, r)
				if cfg.MaxRequests > 0 && total == cfg.MaxRequests {
					require.Equal(t, workloads.Exhausted, st)
				} else {
					require.Equal(t, workloads.Wait, st)
				}
				// Only the reference knows whether the next arrival is beyond MaxRequests, or waits for an entry.
				require.Greater(t, at, now)
				require.LessOrEqual(t, at, refWake)
				wake = at
				break
			}
			require.Equal(t, workloads.Ready, st)
			total++
			require.Equal(
				t,
				[]any{cfg.Users[want.user].ID, int64(want.seq), want.class, want.arrival,
					want.conversation, want.turn, want.context, want.generate},
				[]any{r.User, r.Seq, r.Class, r.Arrival, r.Conversation, r.Turn, r.ContextTokens,
					r.GenerateTokens},
			)
			require.Equal(t, len(want.history), len(r.History))
			require.Equal(t, len(r.History), cap(r.History), "an append must not reach later turns")
			require.Equal(t, !cfg.DecodeOnly && r.ContextTokens >= 10000, r.Kind == workloads.PrefillOnly)
			if len(want.history) > 0 {
				require.Equal(t, want.history, r.History)
			}
			if cfg.DecodeOnly {
				require.Regexp(t, `^pop/(1[01]|[1-9])?[0-9]$`, r.Own.Key)
				require.Equal(t, 2048, r.Own.Tokens)
			} else {
				require.Equal(t, want.own, max(1, r.ContextTokens-r.SystemPromptTokens))
				require.Equal(t, workloads.Entry{Key: workloads.UserKey(r.User, r.Conversation, r.Turn),
					Tokens: want.own}, r.Own)
			}
			j := &job{r: r, ref: want, written: now + random()}
			j.done = j.written + random()
			jobs = append(jobs, j)
		}
		if rng.IntN(10) == 0 {
			until := now + time.Duration(rng.IntN(2))*50*time.Millisecond
			require.Equal(t, ref.account(until), src.Account(until), "account at %v", until)
			now = until
		}
		// Jump to the next event, then execute all events of that time.
		next := wake
		for _, j := range jobs {
			if !j.wrote {
				next = min(next, j.written)
			} else {
				next = min(next, j.done)
			}
		}
		if next == workloads.Never {
			return
		}
		now = max(now, next)
		for _, j := range jobs {
			if !j.wrote && j.written <= now {
				j.wrote, j.ref.written = true, true
				src.Written(j.r)
			}
			if j.wrote && j.done <= now {
				src.Done(j.r, now)
				ref.done(j.ref, now)
			}
		}
		jobs = slices.DeleteFunc(jobs, func(j *job) bool { return j.wrote && j.done <= now })
	}
}
