package requests

import (
	"context"
	"os"
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench"
	"kvbench/kvbench/result"
	"kvbench/tiers"
	"kvbench/tiers/buffer"
	"kvbench/tiers/cache"
	"kvbench/tiers/clock"
	"kvbench/tiers/sim"
	"kvbench/tiers/tiertest"
	"kvbench/tiers/transfer"
	"kvbench/workloads"
	"kvbench/workloads/model"
	"kvbench/workloads/users"
)

// TestMain collects garbage less often: each of hundreds of runs leaves a recorder of megabytes.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	os.Exit(tiertest.FakeCards(m))
}

// unit is the size of a token in these tests, and of a chunk: entries are
// counted in tokens, chunks and pages alike.
const unit = 4096

var testSizer = model.Sizer{BytesPerToken: unit}

// storage makes a tier the storage of a run.
func storage(tier tiers.Files, capacity int64) []cache.Level {
	return []cache.Level{{Kind: tiers.Storage, Tier: transfer.New(tier, nil), Capacity: capacity}}
}

// plenty is a null tier that never has to evict.
func plenty() []cache.Level { return storage(tiertest.NewNull(), 1<<50) }

// slow is a storage tier that moves one token per second in each direction.
func slow(c clock.Clock, capacity int64) []cache.Level {
	return storage(sim.NewLink(unit, c), capacity)
}

// testConfig is a run over the given tiers with a source of the test's own.
func testConfig(levels []cache.Level, src workloads.Source, workers int) runConfig {
	return runConfig{
		engine{Storage: kvbench.StorageConfig{Levels: levels,
			Use: buffer.Use{Chunk: unit, Depth: 1, Workers: workers}}},
		Config{
			Source:  func() (workloads.Source, error) { return src, nil },
			Planner: workloads.Planner{Sizer: testSizer},
			Workers: workers,
		},
	}
}

type engine = kvbench.Config

// runConfig is a trial and its load.
type runConfig struct {
	engine
	Config
}

func runLoad(ctx context.Context, cfg runConfig) (*result.Result, error) {
	return kvbench.Run(ctx, cfg.engine, New(cfg.Config))
}

func simulateLoad(ctx context.Context, cfg runConfig, sim kvbench.SimConfig) (*result.Result,
	error) {
	return kvbench.Simulate(ctx, cfg.engine, New(cfg.Config), sim)
}

// finite marks the source as finite: the run ends with it.
func (c runConfig) finite() runConfig {
	c.EndedBy = result.EndedByInput
	return c
}

func (c runConfig) lasting(window time.Duration) runConfig {
	c.Window = window
	return c
}

// mustRun executes a trial that has to be complete with its counts in order.
func mustRun(t *testing.T, cfg runConfig) *result.Result {
	t.Helper()
	r, err := runLoad(t.Context(), cfg)
	require.NoError(t, err)
	require.Equal(t, result.StatusComplete, r.Status)
	checkLoad(t, r)
	return r
}

// checkLoad checks that every offered request is accounted for.
func checkLoad(t *testing.T, r *result.Result) {
	t.Helper()
	var sum int64
	for c, o := range r.Load {
		assert.Equal(t, o.Offered, o.Completed+o.Failed+o.InFlight+o.Queued, "%s: %+v", c, o)
		if c != "total" {
			sum += o.Completed
		}
	}
	assert.Equal(t, r.Requests.Completed, sum)
	assert.Equal(t, r.Requests.Completed, r.Load["total"].Completed)
	assert.Equal(t, r.Requests.Failed, r.Load["total"].Failed)
}

// script is a source of given requests in their order, which must be that of
// arrival. Like every source it is called under the dispatcher's lock.
type script struct {
	requests []*workloads.Request
	next     int
	ordered  bool // a request starts when the one before it is written
	endless  bool // it never says that it is exhausted
	written  map[int64]int
	done     map[int64]int
	begin    time.Time
	log      []event
}

// event is a call of a script, with the time since it was made.
type event struct {
	at   time.Duration
	what string
}

func (s *script) note(what string, r *workloads.Request) {
	s.log = append(s.log, event{time.Since(s.begin), what + " " + r.Own.Key})
}

var _ workloads.Source = (*script)(nil)

func newScript(requests ...*workloads.Request) *script {
	for i, r := range requests {
		r.Seq = int64(i)
	}
	return &script{requests: requests, written: map[int64]int{}, done: map[int64]int{}, begin: time.Now()}
}

func (s *script) Take(now time.Duration) (*workloads.Request, workloads.State, time.Duration) {
	if s.next == len(s.requests) {
		if s.endless {
			return nil, workloads.Wait, workloads.Never
		}
		return nil, workloads.Exhausted, workloads.Never
	}
	if s.ordered && s.next > 0 && s.written[int64(s.next-1)] == 0 {
		return nil, workloads.Wait, workloads.Never
	}
	r := s.requests[s.next]
	if r.Arrival > now {
		return nil, workloads.Wait, r.Arrival
	}
	s.next++
	s.note("take", r)
	return r, workloads.Ready, 0
}

func (s *script) Written(r *workloads.Request) {
	s.written[r.Seq]++
	s.note("written", r)
}

func (s *script) Done(r *workloads.Request, _ time.Duration) {
	s.done[r.Seq]++
	s.note("done", r)
}

func (s *script) Account(until time.Duration) []workloads.ClassLoad {
	loads := make([]workloads.ClassLoad, workloads.NumClasses)
	for c := range loads {
		loads[c].Oldest = workloads.Never
	}
	for i, r := range s.requests {
		l := &loads[r.Class]
		if i >= s.next && r.Arrival > until {
			continue
		}
		l.Offered++
		l.OfferedTokens += int64(r.Own.Tokens)
		if i >= s.next {
			l.Queued++
			l.Oldest = min(l.Oldest, r.Arrival)
		}
	}
	return loads
}

// conversation is the turns of one user, each with the entries before it as
// history.
func conversation(user, turns, tokens int, kind workloads.Kind) []*workloads.Request {
	var all []*workloads.Request
	var history []workloads.Entry
	for turn := 1; turn <= turns; turn++ {
		own := workloads.Entry{Key: workloads.UserKey(user, 1, turn), Tokens: tokens}
		all = append(all, &workloads.Request{
			User: user, Conversation: 1, Turn: turn, Kind: kind, ContextTokens: tokens,
			SystemPrompt: -1, Own: own, History: history,
		})
		history = append(history[:len(history):len(history)], own)
	}
	return all
}

// singles are n independent requests that write one entry each.
func singles(n, tokens int) []*workloads.Request {
	var all []*workloads.Request
	for i := range n {
		all = append(all, conversation(i, 1, tokens, workloads.PrefillOnly)...)
	}
	return all
}

// population is a load of synthetic users.
func population(n int, change func(*users.Config)) workloads.Source {
	p := users.Default()
	cfg := users.Config{Profile: p, Users: users.Population(p, 42, n, true), Seed: 42,
		MultiTurn: true, PrefixCaching: true}
	if change != nil {
		change(&cfg)
	}
	return users.New(cfg)
}

// noLeaks fails the test when goroutines that it started outlive it. A run has cancelled its
// goroutines when it returns; they only need time to end.
func noLeaks(t *testing.T) {
	t.Helper()
	before := runtime.NumGoroutine()
	t.Cleanup(func() {
		for range 10_000_000 { // some seconds
			if runtime.NumGoroutine() <= before {
				return
			}
			runtime.Gosched()
		}
		if n := runtime.NumGoroutine(); n > before {
			stacks := make([]byte, 1<<16)
			t.Errorf("%d goroutines, %d before\n%s", n, before,
				stacks[:runtime.Stack(stacks, true)])
		}
	})
}

// interrupt is what a signal does to a run.
func interrupt(cancel context.CancelCauseFunc) { cancel(kvbench.Interrupted{Why: assert.AnError}) }
