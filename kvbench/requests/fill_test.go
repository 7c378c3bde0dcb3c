package requests

import (
	"context"
	"slices"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench"
	"kvbench/kvbench/result"
	"kvbench/tiers"
	"kvbench/tiers/cache"
	"kvbench/tiers/clock"
	"kvbench/tiers/faults"
	"kvbench/tiers/tiertest"
	"kvbench/workloads"
)

// evictions records which entries leave a tier, in their order.
type evictions struct {
	tiers.Tier
	mu   sync.Mutex
	keys []string
}

func (e *evictions) Remove(ctx context.Context, objs ...tiers.Object) error {
	e.mu.Lock()
	for _, o := range objs {
		e.keys = append(e.keys, o.Key)
	}
	e.mu.Unlock()
	return e.Tier.Remove(ctx, objs...)
}

func TestPreconditioningReportsAndLeavesTheFirstVictims(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wall := clock.NewWall()
		seen := &evictions{Tier: slow(wall, 1)[0].Tier}
		src := newScript(singles(7, 2)...)
		cfg := testConfig(storage(seen, 10*unit), src, 1).finite()
		cfg.Clock = wall
		cfg.Storage.MaxWriters = 1 // bounds the load, not the preconditioning
		cfg.Precondition = Precondition{Bytes: 20 * unit, Threads: 4, Tokens: 1}
		var stages []string
		var last kvbench.Snapshot
		cfg.Progress = func(s kvbench.Snapshot) {
			if s.Stage == "preconditioning" {
				last = s
			}
			if !slices.Contains(stages, s.Stage) {
				stages = append(stages, s.Stage)
			}
		}
		r := mustRun(t, cfg)
		p := r.Precondition
		require.NotNil(t, p)
		assert.EqualValues(t, 20*unit, p.Bytes)
		assert.Equal(t, int64(20*time.Second), p.DurationNS)
		assert.Equal(t, 4, p.Writers)
		require.Len(t, p.LastRates, 4)
		for _, rate := range p.LastRates {
			assert.InDelta(t, unit, rate, unit/20, "the rate of the tier")
		}
		assert.Less(t, p.Spread, 0.05)
		assert.Equal(t, []string{"preconditioning", "running"}, stages)
		assert.EqualValues(t, 20*unit, last.Of)
		assert.Greater(t, last.Done, int64(15*unit))

		// Ten of its entries stayed, and go before any of the load's.
		require.Len(t, seen.keys, 20+2)
		for i, key := range seen.keys[:20] {
			assert.Contains(t, key, "pre/", "victim %d", i)
		}
		assert.Equal(t, []string{"u0/c1/t1", "u1/c1/t1"}, seen.keys[20:])
		assert.EqualValues(t, 12, r.Tiers[0].Evicted.Entries, "of the window alone")
		assert.EqualValues(t, 7, r.Tiers[0].Write.Operations)
		assert.EqualValues(t, 7*2*unit, r.Tiers[0].Write.Bytes)
	})
}

func TestDefaultsOfPreconditioning(t *testing.T) {
	cfg := testConfig(storage(tiertest.NewNull(), 100*2048*unit), newScript(singles(1, 1)...),
		1).finite()
	cfg.Precondition = Precondition{Bytes: 10*2048*unit - 1}
	r := mustRun(t, cfg)
	assert.EqualValues(t, 10*2048*unit, r.Precondition.Bytes, "whole entries of 2048 tokens")
	assert.EqualValues(t, 10+1, r.Tiers[0].Entries)
}

func TestAPopulationThatDoesNotFitNamesTheUsersThatWould(t *testing.T) {
	cfg := testConfig(storage(tiertest.NewNull(), 45*8*unit), newScript(), 1).lasting(time.Second)
	cfg.Population = Population{Entries: 50, Tokens: 8} // of five users
	r, err := runLoad(t.Context(), cfg)
	require.ErrorIs(t, err, cache.ErrTooLarge)
	assert.ErrorContains(t, err, "-num-users 4 would fit")
	assert.ErrorContains(t, err, "need 1.56 MiB")
	assert.ErrorContains(t, err, "has 1.41 MiB")
	assert.Equal(t, result.StatusFailed, r.Status)
	assert.Equal(t, result.EndedByCapacity, r.EndedBy)
}

func TestAPopulationIsWrittenWithoutTheWriteLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wall := clock.NewWall()
		var all []*workloads.Request
		for n := range 20 {
			all = append(all, &workloads.Request{Kind: workloads.DecodeOnly, SystemPrompt: -1,
				Own: workloads.Entry{Key: workloads.PopulationKey(n), Tokens: 3}})
		}
		cfg := testConfig(slow(wall, 1<<40), newScript(all...), 5).finite()
		cfg.Clock, cfg.Storage.MaxWriters = wall, 1
		cfg.Population = Population{Entries: 20, Tokens: 3}
		begin := time.Now()
		r := mustRun(t, cfg)
		assert.Equal(t, 2*60*time.Second, time.Since(begin),
			"written once and read once over one link")
		assert.Equal(t, int64(60*time.Second), r.WindowNS)
		assert.EqualValues(t, 20, r.Lookups.Hits)
		assert.EqualValues(t, 20, r.FirstReads.Operations)
	})
}

func TestAFailureWhileFillingEndsTheRun(t *testing.T) {
	cfg, tier := faulty(nil, 100)
	cfg.Population = Population{Entries: 100, Tokens: 8}
	tier.SetHook(faults.On(faults.Commit, 50, syscall.EACCES))
	r, gauges, err := usage(t.Context(), t, cfg)
	require.ErrorIs(t, err, syscall.EACCES)
	assert.ErrorContains(t, err, "filling")
	assert.Equal(t, result.StatusFailed, r.Status)
	checkUsage(t, tier, gauges)
}
