package requests

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/tiers/clock"
	"kvbench/workloads"
	"kvbench/workloads/users"
)

// one is a user of a fixed think time.
func one(id int, class workloads.Class, think float64) users.User {
	return users.User{ID: id, Class: class, Context: 4, Generate: 4, Think: think}
}

// ofUsers is an open-loop load of the given users.
func ofUsers(change func(*users.Config), list ...users.User) workloads.Source {
	cfg := users.Config{Profile: users.Default(), Users: list, Seed: 1, MultiTurn: true}
	if change != nil {
		change(&cfg)
	}
	return users.New(cfg)
}

func TestTheMostUrgentRequestGoesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wall := clock.NewWall()
		// All arrive while the only worker is busy with the first.
		list := []users.User{one(0, workloads.Batch, 1e-3), one(1, workloads.Batch, 0.5),
			one(2, workloads.Responsive, 0.6), one(3, workloads.Interactive, 0.7)}
		cfg := testConfig(slow(wall, 1<<40),
			ofUsers(func(u *users.Config) { u.ClosedLoop, u.PrefillOnly = true, true }, list...), 1)
		cfg.Clock, cfg.Limit = wall, 4
		cfg.Planner.Sizer.BytesPerToken = 1000 * unit
		var order []int
		cfg.OnDispatch = func(r *workloads.Request, _ []workloads.Op) {
			order = append(order, r.User)
		}
		mustRun(t, cfg)
		assert.Equal(t, []int{0, 3, 2, 3}, order[:4],
			"the urgent one is back before the patient ones have had their turn")
	})
}

func TestATurnWaitsForTheOneBeforeIt(t *testing.T) {
	for _, overtaking := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			wall := clock.NewWall()
			src := ofUsers(func(u *users.Config) {
				u.Overtaking, u.PrefillOnly, u.Profile.NewConversation = overtaking, true, 0
			}, one(0, workloads.Batch, 0.01))
			cfg := testConfig(slow(wall, 1<<40), src, 8).lasting(20 * time.Second)
			cfg.Clock, cfg.Overtaking = wall, overtaking
			running, most := 0, 0
			cfg.OnDispatch = func(r *workloads.Request, plan []workloads.Op) {
				running++
				most = max(most, running)
			}
			cfg.Source = func() (workloads.Source, error) {
				return &watched{Source: src, written: func() { running-- }}, nil
			}
			r := mustRun(t, cfg)
			if overtaking {
				assert.Equal(t, 8, most)
				assert.Positive(t, r.Lookups.NotYetWritten)
				return
			}
			assert.Equal(t, 1, most, "all turns are of one conversation")
			assert.Zero(t, r.Lookups.ByKind["multi_turn"].Pending,
				"no request is dispatched only to wait")
			assert.Zero(t, r.Lookups.ByKind["multi_turn"].Misses)
			assert.Greater(t, r.Load["total"].Queued, int64(100), "they arrive all the same")
		})
	}
}

// watched is a source that calls written when an entry is written.
type watched struct {
	workloads.Source
	written func()
}

func (w *watched) Written(r *workloads.Request) {
	w.Source.Written(r)
	w.written()
}

// The source gets one Written and one Done for every request, in this order, also for requests that
// fail, hit, or are cut off.
func TestEveryRequestIsWrittenAndDoneOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wall := clock.NewWall()
		requests := append(conversation(1, 3, 1, workloads.PrefillDecode),
			conversation(2, 2, 1, workloads.DecodeOnly)...)
		// exists already
		requests = append(requests, conversation(1, 1, 1, workloads.PrefillOnly)[0])
		requests = append(requests, conversation(3, 1, 1000, workloads.PrefillOnly)[0])
		requests[len(requests)-1].Arrival = 30 * time.Second // its write would hold up the others
		src := newScript(requests...)
		cfg := testConfig(slow(wall, 1<<40), src, 2).lasting(60 * time.Second)
		cfg.Clock = wall
		r := mustRun(t, cfg)
		assert.EqualValues(t, 6, r.Requests.Completed)
		assert.EqualValues(t, 1, r.Load["total"].InFlight)
		for i := range requests {
			assert.Equal(t, 1, src.written[int64(i)], "request %d", i)
			assert.Equal(t, 1, src.done[int64(i)], "request %d", i)
		}
	})
}

func TestATurnStartsWhenTheOneBeforeItIsWrittenNotWhenItIsAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wall := clock.NewWall()
		src := newScript(conversation(1, 2, 3, workloads.PrefillDecode)...)
		src.ordered = true
		cfg := testConfig(slow(wall, 1<<40), src, 2).finite()
		cfg.Clock = wall
		begin := wall.Now()
		var at []time.Duration
		cfg.OnDispatch = func(*workloads.Request, []workloads.Op) {
			at = append(at, wall.Now()-begin)
		}
		mustRun(t, cfg)
		assert.Equal(t, []time.Duration{0, 3 * time.Second}, at)
		require.Len(t, src.log, 6)
		assert.Equal(t, []string{"take u1/c1/t1", "written u1/c1/t1", "take u1/c1/t2"}, src.log[:3])
		// The first is read for three seconds while the second is written for as long.
		assert.ElementsMatch(t, []string{"done u1/c1/t1", "written u1/c1/t2"}, src.log[3:5])
		assert.Equal(t, "done u1/c1/t2", src.log[5])
	})
}

func TestAClosedLoopThinksAfterTheAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wall := clock.NewWall()
		user := one(0, workloads.Interactive, 1) // think 0.8 to 1.2 s
		user.Context, user.Generate = 1, 1       // one second to write, one to read
		src := ofUsers(func(u *users.Config) { u.ClosedLoop, u.MultiTurn = true, false }, user)
		cfg := testConfig(slow(wall, 1<<40), src, 3).lasting(300 * time.Second)
		cfg.Clock = wall
		r := mustRun(t, cfg)
		assert.InDelta(t, 100, r.Requests.Completed, 6, "one every three seconds")
		assert.Equal(t, int64(0), *r.Latency.Request.Queue.Max)
		assert.Equal(t, int64(2*time.Second), *r.Latency.Request.EndToEnd.Max)
		assert.LessOrEqual(t, r.Load["total"].Queued+r.Load["total"].InFlight, int64(1))
	})
}

// One timer serves all arrivals, and none is late.
func TestThePacerWakesOnTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := ofUsers(nil, one(0, workloads.Batch, 0.3), one(1, workloads.Interactive, 7),
			one(2, workloads.Responsive, 0.011))
		cfg := testConfig(plenty(), src, 3).lasting(20 * time.Second)
		r := mustRun(t, cfg)
		assert.Greater(t, r.Requests.Completed, int64(1800))
		assert.Zero(t, *r.Latency.Request.Queue.Max)
		assert.Zero(t, *r.Latency.Request.EndToEnd.Max)
		assert.Equal(t, r.Load["total"].Offered, r.Requests.Completed)
	})
}
