package requests

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench/result"
	"kvbench/tiers/clock"
	"kvbench/tiers/faults"
	"kvbench/tiers/memtier"
	"kvbench/tiers/sim"
	"kvbench/workloads"
	"kvbench/workloads/formats"
	"kvbench/workloads/model"
	"kvbench/workloads/traces"
	"kvbench/workloads/users"
)

func TestASourceThatFailsToOpenHasAFailedResult(t *testing.T) {
	cfg := testConfig(plenty(), nil, 4).finite()
	// a nil *Trace in a non-nil Source, as such functions return it
	cfg.Source = func() (workloads.Source, error) {
		return traces.New(formats.Azure,
			traces.Config{Paths: []string{filepath.Join(t.TempDir(), "absent.csv")}})
	}
	r, err := runLoad(t.Context(), cfg)
	require.ErrorIs(t, err, os.ErrNotExist)
	require.NotNil(t, r)
	assert.Equal(t, result.StatusFailed, r.Status)
	assert.Equal(t, result.EndedByError, r.EndedBy)
}

// A write of five chunks of a second each is cut in its third: two count.
func TestChunksOfWhatWasCutCountAsBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner, err := memtier.New(1 << 20)
		require.NoError(t, err)
		defer inner.Close()
		wall := clock.NewWall()
		tier := faults.Wrap(inner, func(ctx context.Context, e faults.Event) error {
			if e.Call != faults.Write {
				return nil
			}
			return wall.Sleep(ctx, time.Second)
		})
		cfg := testConfig(storage(tier, 1<<20), newScript(singles(9, 5)...),
			1).lasting(7500 * time.Millisecond)
		cfg.Clock = wall
		r := mustRun(t, cfg)
		assert.EqualValues(t, 1, r.Requests.Completed)
		assert.EqualValues(t, (5+2)*unit, r.Tiers[0].Write.Bytes)
		assert.EqualValues(t, 1, r.Tiers[0].Write.Operations)
		assert.EqualValues(t, 1, r.Tiers[0].Entries)
		assert.Equal(t, int64(3*time.Second), r.Requests.OldestCancelledNS,
			"the chunk in flight completes first")
		w, rd := tier.InUse()
		assert.Zero(t, w+rd)
		assert.Zero(t, r.Requests.FailedOperations, "cutting is no failure")
	})
}

// In real time and with fast tiers, completions crowd around both edges.
func TestTheCountsAreExactAtTheEdgesOfAFastWindow(t *testing.T) {
	for n := range 4 {
		synctest.Test(t, func(t *testing.T) {
			wall := clock.NewWall()
			tier := sim.NewLink(unit*1e8, wall) // many operations end at each moment
			src := population(30, func(u *users.Config) { u.Rate = 1e6; u.MultiTurn = false })
			cfg := testConfig(storage(tier, 1<<50), src, 8).lasting(20 * time.Millisecond)
			cfg.Clock = wall
			if n%2 == 1 {
				cfg.Warmup = 10 * time.Millisecond
			}
			r := mustRun(t, cfg)
			assert.Equal(t, int64(20*time.Millisecond), r.WindowNS)
		})
	}
}

// Requests that wait or run when the window opens count as offered in it, too.
func TestOutcomesOfAWindow(t *testing.T) {
	l := &Load{after: account{at: 40 * time.Second}}
	c := workloads.Batch
	l.before.classes[c] = classCounts{
		ClassLoad: workloads.ClassLoad{Offered: 40, OfferedTokens: 80_000, Queued: 5,
			Oldest: time.Second},
		started: 35, failed: 1, inFlight: 2, ages: []time.Duration{time.Second, 0},
	}
	l.after.classes[c] = classCounts{
		ClassLoad: workloads.ClassLoad{Offered: 640, OfferedTokens: 1_280_000, Queued: 388,
			Oldest: 28 * time.Second},
		started: 252, failed: 3, inFlight: 3,
		ages: []time.Duration{time.Second, 900 * time.Millisecond, 1100 * time.Millisecond},
	}
	var targets [workloads.NumClasses]workloads.QoS
	targets[c].P95 = time.Second
	all := l.outcomes(model.Sizer{BytesPerToken: 2}, targets)
	assert.Equal(t, result.ClassOutcome{Offered: 600 + 5 + 2, OfferedBytes: 2_400_000, CarriedIn: 5,
		Started: 217, Failed: 2, InFlight: 3, Late: 1, Queued: 388, OldestQueuedAgeS: new(12.0),
		OldestInFlightAgeS: new(1.1)}, all["batch"])
	assert.Zero(t, all["interactive"])
}
