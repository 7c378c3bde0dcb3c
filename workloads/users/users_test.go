package users

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/workloads"
	"kvbench/workloads/model"
)

// No prompt exceeds the model's window. A conversation ends exactly before the turn that would exceed it,
// and a context longer than the window is cut. A window that no context reaches changes nothing.
func TestContextWindow(t *testing.T) {
	p := Default()
	p.NewConversation = 0
	load := func(window, n int) (all []*workloads.Request) {
		s := New(Config{Profile: p, Users: Population(p, 3, 12, false), Seed: 3, MultiTurn: true,
			PrefixCaching: true, Overtaking: true, Window: window})
		for range n {
			r, st, _ := s.Take(time.Hour)
			require.Equal(t, workloads.Ready, st)
			all = append(all, r)
		}
		return all
	}
	prompt := func(r *workloads.Request) (tokens int) {
		for _, e := range r.History {
			tokens += e.Tokens
		}
		return tokens + r.ContextTokens
	}
	assert.Equal(t, load(0, 600), load(1<<30, 600))
	for _, window := range []int{4096, 32768, 131072} {
		last, ended, cut := map[int]*workloads.Request{}, 0, 0
		for i, r := range load(window, 2000) {
			assert.LessOrEqual(t, prompt(r), window, "%d", i)
			if r.ContextTokens == window {
				cut++
			}
			assert.LessOrEqual(t, r.Own.Tokens, r.ContextTokens)
			if before := last[r.User]; before != nil && r.Turn == 1 && before.Turn < p.MaxTurns {
				ended++
				assert.Greater(t, prompt(before)-before.SystemPromptTokens+r.ContextTokens, window)
			}
			last[r.User] = r
		}
		assert.Positive(t, ended)
		assert.Equal(t, window == 4096, cut > 0, "only templates of up to 25,000 tokens are cut")
	}
}

// A conversation with the same common prompt is one sequence that grows. In objects of 16 tokens a turn
// finds all earlier tokens except the last ones that filled no object, and no other request's tokens.
func TestConversationsAreSequences(t *testing.T) {
	p := Default()
	p.SystemPromptShare, p.SystemPromptTokens = 0.5, []int{40, 3000}
	const window = 40000
	s := New(Config{Profile: p, Seed: 7, Users: Population(p, 7, 20, false), MultiTurn: true,
		PrefixCaching: true, KeepPrompt: true, Window: window})
	plans := workloads.Planner{ObjectTokens: 16, Sizer: model.Sizer{BytesPerToken: 1}}
	seen := map[string]bool{}
	prompts := map[[2]int]int{} // of conversations
	later := 0
	for now := time.Duration(0); later < 80; {
		r, st, wake := s.Take(now)
		if st == workloads.Wait {
			now = wake
			continue
		}
		id := [2]int{r.User, r.Conversation}
		if r.Turn == 1 {
			prompts[id] = r.SystemPrompt
		}
		require.Equal(t, prompts[id], r.SystemPrompt)
		require.LessOrEqual(t, r.PromptTokens(), window)
		ops := plans.Plan(nil, r)
		require.Len(t, ops, r.PromptTokens()/16)
		found := 0
		for found < len(ops) && seen[ops[found].Key] {
			found++
		}
		for i, op := range ops {
			require.Equal(t, i < found, seen[op.Key], "behind the first new one all is new")
			seen[op.Key] = true
		}
		if before := r.PromptTokens() - r.Own.Tokens; r.Turn > 1 {
			require.Equal(t, before/16, found, "%v turn %d", id, r.Turn)
			later++
		} else {
			require.LessOrEqual(t, found, before/16, "of the common prompt at most")
		}
		s.Written(r)
	}
}

// TestPoissonArrivals: counts per interval of all users together have a variance equal to their
// mean.
func TestPoissonArrivals(t *testing.T) {
	p := Default()
	s := New(Config{Profile: p, Seed: 3, Users: Population(p, 3, 20, false), Rate: 100})
	last, sum, squares := int64(0), 0.0, 0.0
	const n = 4000
	for i := 1; i <= n; i++ {
		total := int64(0)
		for _, l := range s.Account(time.Duration(i) * 100 * time.Millisecond) {
			total += l.Offered
		}
		v := float64(total - last)
		sum, squares, last = sum+v, squares+v*v, total
	}
	mean := sum / n
	assert.InDelta(t, 10, mean, 0.15)
	assert.InDelta(t, 10, squares/n-mean*mean, 0.7)
}

func TestClosedLoopTickets(t *testing.T) {
	p := Default()
	for _, limit := range []int64{1, 7, 20, 21, 100} {
		s := New(
			Config{Profile: p, Seed: 3, Users: Population(p, 3, 20, false), ClosedLoop: true,
				MaxRequests: limit},
		)
		taken := int64(0)
		simulate(s, 3, func(*workloads.Request) time.Duration { return 10 * time.Millisecond },
			func(time.Duration, *workloads.Request) bool { taken++; return false })
		assert.Equal(t, limit, taken)
		_, st, _ := s.Take(time.Hour)
		assert.Equal(t, workloads.Exhausted, st)
		total := int64(0)
		for _, l := range s.Account(time.Hour) {
			total += l.Offered
			assert.Zero(t, l.Queued)
			assert.Equal(t, workloads.Never, l.Oldest)
		}
		assert.Equal(t, limit, total)
	}
}

func TestNoUsers(t *testing.T) {
	_, st, wake := New(Config{Profile: Default()}).Take(0)
	assert.Equal(t, workloads.Exhausted, st)
	assert.Equal(t, workloads.Never, wake)
}

// TestWakeAtTheEnd: after the last request there is no further time to wake up.
func TestWakeAtTheEnd(t *testing.T) {
	p := Default()
	p.NewConversation = 0
	users := []User{{ID: 0, Context: 10, Generate: 10, Think: 0.1},
		{ID: 1, Context: 10, Generate: 10, Think: 10}}
	s := New(Config{Profile: p, Users: users, MultiTurn: true, MaxRequests: 3})
	for n := range int64(3) {
		r, st, _ := s.Take(time.Second)
		require.Equal(t, workloads.Ready, st)
		require.Equal(t, []int64{0, n}, []int64{int64(r.User), r.Seq})
		if n < 2 {
			_, st, wake := s.Take(time.Second)
			require.Equal(t, workloads.Wait, st)
			require.Equal(t, workloads.Never, wake)
		}
		s.Written(r)
	}
	_, st, _ := s.Take(time.Second)
	assert.Equal(t, workloads.Exhausted, st)
}

// TestTies: arrivals of the same time are ordered by class if priorities are equal, and by user within a
// class.
func TestTies(t *testing.T) {
	p := Default()
	for c := range p.QoS {
		p.QoS[c].Priority = 1
	}
	var users []User
	for i, c := range []workloads.Class{
		workloads.Batch, workloads.Interactive, workloads.Responsive,
		workloads.Batch, workloads.Interactive, workloads.Responsive,
	} {
		users = append(users,
			User{ID: i, Class: c, Context: 10, Generate: 10}) // without think time all users begin at the origin
	}
	s := New(Config{Profile: p, Users: users, ClosedLoop: true})
	for _, want := range []int{1, 4, 2, 5, 0, 3} {
		r, st, _ := s.Take(0)
		require.Equal(t, workloads.Ready, st)
		require.Equal(t, want, r.User)
	}
}

// TestTimeGoingBack: workers read their clocks before they get the mutex.
func TestTimeGoingBack(t *testing.T) {
	p := Default()
	s := New(
		Config{Profile: p, Seed: 5, Users: Population(p, 5, 30, false), MultiTurn: true,
			Overtaking: true},
	)
	_, st, _ := s.Take(10 * time.Second)
	require.Equal(t, workloads.Ready, st)
	_, st, _ = s.Take(0)
	require.Equal(t, workloads.Ready, st)
	a, b := s.Account(time.Second), s.Account(10*time.Second)
	assert.Equal(t, b, a)
	for _, l := range a {
		assert.GreaterOrEqual(t, l.Queued, int64(0))
	}
}

// TestZeroThinkTime: without waiting for answers, such a user makes at most a thousand requests per second.
func TestZeroThinkTime(t *testing.T) {
	p := Default()
	p.Templates = []Template{{Name: "busy", Context: [2]int{1, 1}, Generate: [2]int{1, 1}}}
	s := New(Config{Profile: p, Users: Population(p, 1, 1, false)})
	total := int64(0)
	for _, l := range s.Account(time.Second) {
		total += l.Offered
	}
	assert.Equal(t, int64(1000), total)
}

// TestBacklogTakesLittleMemory lets 1,000 users fall four minutes behind. Hundreds of thousands of requests
// wait, with some bytes each.
func TestBacklogTakesLittleMemory(t *testing.T) {
	p := Default()
	s := New(
		Config{Profile: p, Seed: 42, Users: Population(p, 42, 1000, false), MultiTurn: true,
			PrefixCaching: true, Overtaking: true},
	)
	heapBytes := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	step := func(now time.Duration) {
		for range 100 {
			_, st, _ := s.Take(now)
			require.Equal(t, workloads.Ready, st)
		}
		s.Account(now)
	}
	step(time.Minute)
	before := heapBytes()
	step(2 * time.Minute)
	step(4 * time.Minute)
	grown := heapBytes() - before
	queued := int64(0)
	for _, l := range s.Account(0) {
		queued += l.Queued
	}
	assert.Greater(t, queued, int64(300_000))
	assert.Less(t, grown, 24*queued)
	runtime.KeepAlive(s)
}
