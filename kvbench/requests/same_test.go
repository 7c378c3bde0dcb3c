package requests

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench"
	"kvbench/kvbench/record"
	"kvbench/kvbench/result"
	"kvbench/tiers"
	"kvbench/tiers/cache"
	"kvbench/tiers/clock"
	"kvbench/tiers/sim"
	"kvbench/tiers/tiertest"
	"kvbench/tiers/transfer"
	"kvbench/workloads"
	"kvbench/workloads/compute"
	"kvbench/workloads/users"
)

// watchedLoad is a load's plans, decisions and counts, independent of the kind of time.
type watchedLoad struct {
	plans  []string
	hits   []int
	counts string
}

// watch notes plans and decisions of a configuration's run.
func (w *watchedLoad) watch(cfg runConfig) runConfig {
	cfg.OnDispatch = func(r *workloads.Request, plan []workloads.Op) {
		var b strings.Builder
		fmt.Fprintf(&b, "%d %v %s", r.User, r.Arrival, r.Own.Key)
		for _, op := range plan {
			fmt.Fprintf(&b, " %s %s %s %d x%d", op.Kind, op.Purpose, op.Key, op.Bytes, op.Times)
		}
		w.plans = append(w.plans, b.String())
	}
	cfg.OnBlocks = func(_ *workloads.Request, s record.BlockSample) {
		w.hits = append(w.hits, int(s.Hits))
	}
	return cfg
}

// keep notes the counts of a result: hits, operations, bytes, evictions, counts.
func (w *watchedLoad) keep(t *testing.T, r *result.Result) {
	t.Helper()
	checkLoad(t, r)
	for i := range r.Tiers {
		r.Tiers[i].Description = ""
	}
	// gauges of the edges' very moments may be read before or after what else happens then; what
	// takes no time has no times over time
	if r.Timeline != nil {
		r.Timeline.TimesUS = nil
		r.Timeline.Queued, r.Timeline.InFlight, r.Timeline.TierUsedBytes = nil, nil, nil
	}
	out, err := json.MarshalIndent([]any{
		r.EndedBy, r.WindowNS, r.Requests, r.Load, r.Lookups, r.BlockCache, r.Tiers,
		r.FirstReads.Bytes, r.ReReads.Bytes,
		r.EntrySizes.Write, r.Harness.WorkerIdleNS, r.Harness.WorkerBusyNS, r.Timeline,
	}, "", " ")
	require.NoError(t, err)
	w.counts = string(out)
}

// instantLevels are the tiers of a simulation without a device.
func instantLevels(c kvbench.StorageConfig) (levels []cache.Level) {
	for kind, capacity := range []int64{c.GPUBytes, c.CPUBytes, cmp.Or(c.StorageBytes, 1<<60)} {
		if capacity > 0 {
			levels = append(levels, cache.Level{Kind: tiers.Kind(kind), Capacity: capacity})
		}
	}
	return levels
}

// aDrive is the device model of both runs of a load.
var aDrive = tiers.DeviceModel{Read: 1 << 30, Write: 1 << 29, ReadLatency: 80 * time.Microsecond,
	WriteLatency: 20 * time.Microsecond, Parallelism: 4}

// drivenLevels are the tiers of a simulation on aDrive, for a run in wall time.
func drivenLevels(t *testing.T, c kvbench.StorageConfig, wall clock.Clock) []cache.Level {
	t.Helper()
	levels := instantLevels(c)
	for i := range levels {
		switch levels[i].Kind {
		case tiers.GPU:
			levels[i].Tier = transfer.New(sim.NewLink(c.GPUBandwidth, wall), nil)
		case tiers.Storage:
			levels[i].Tier = transfer.New(sim.NewDevice(aDrive, "a drive", wall), nil)
		}
	}
	return levels
}

// turns are a closed loop of 100 ordered turns, which one worker serves over three tiers.
func turns(t *testing.T) runConfig {
	cfg := optionOne(t, 0)
	cfg.EndedBy, cfg.Workers = result.EndedByMaxRequests, 1
	cfg.Source = func() (workloads.Source, error) {
		p := users.Default()
		return users.New(users.Config{Profile: p, Users: users.Population(p, 42, 10, false),
			Seed: 42, MultiTurn: true, PrefixCaching: true, ClosedLoop: true,
			MaxRequests: 100}), nil
	}
	cfg.Storage.GPUBytes, cfg.Storage.GPUBandwidth = 2<<30, 8<<30
	cfg.Storage.CPUBytes, cfg.Storage.StorageBytes = 4<<30, 8<<30
	cfg.TokenTime = 2 * time.Millisecond
	return cfg
}

// One load over one device is the same in wall time and in virtual time: the same plans in the same
// order, hits, bytes, evictions, counts, and even times. Many workers act at one moment of a drive,
// in an order that wall time does not fix, so that their tiers take no time here.
func TestWallAndVirtualTimeRunTheSameLoad(t *testing.T) {
	loads := map[string]struct {
		config  func() runConfig
		instant bool
		ended   string
	}{
		"few workers that generate, warm-up": {func() runConfig {
			cfg := optionOne(t, 2*time.Second)
			cfg.Storage.GPUBytes, cfg.Storage.CPUBytes, cfg.Storage.StorageBytes = 5<<30, 10<<30,
				30<<30
			cfg.TokenTime, cfg.Workers, cfg.Warmup = 5*time.Millisecond, 30, 1500*time.Millisecond
			return cfg
		}, true, result.EndedByDeadline},
		"turns": {func() runConfig { return turns(t) }, false, result.EndedByMaxRequests},
		"a deadline": {func() runConfig {
			cfg := turns(t)
			cfg.Window = 10*time.Second + 1         // when nothing else happens
			cfg.Cost = compute.Cost{PerToken: 1e-4} // seconds
			return cfg
		}, false, result.EndedByDeadline},
		"documents": {func() runConfig {
			cfg := ragConfig(10, 3, 100)
			cfg.Workers, cfg.Storage.StorageBytes = 1, 1<<30
			cfg.Window, cfg.EndedBy = 0, result.EndedByMaxRequests
			return cfg
		}, false, result.EndedByMaxRequests},
		"blocks": {func() runConfig {
			cfg := blockConfig(smallTrace, 1)
			cfg.Storage.CPUBytes, cfg.Storage.StorageBytes = 30*512*128, 50*512*128
			return cfg
		}, false, result.EndedByInput},
	}
	for name, load := range loads {
		t.Run(name, func(t *testing.T) {
			if !load.instant { // one worker
				tiertest.OneThread(t)
			}
			var wall, virtual watchedLoad
			device := &aDrive
			if load.instant {
				device = nil
			}
			synctest.Test(t, func(t *testing.T) {
				cfg := wall.watch(load.config())
				cfg.Clock, cfg.Storage.Simulated = clock.NewWall(), true
				if load.instant {
					cfg.Storage.Levels = instantLevels(cfg.Storage)
				} else {
					cfg.Storage.Levels = drivenLevels(t, cfg.Storage, cfg.Clock)
				}
				res, err := runLoad(t.Context(), cfg)
				require.NoError(t, err)
				assert.Equal(t, load.ended, res.EndedBy)
				wall.keep(t, res)
			})
			res, err := simulateLoad(t.Context(), virtual.watch(load.config()),
				kvbench.SimConfig{Device: device})
			require.NoError(t, err)
			checkSums(t, res)
			virtual.keep(t, res)
			assert.NotEmpty(t, wall.plans)
			assert.Equal(t, wall.plans, virtual.plans)
			assert.Equal(t, wall.hits, virtual.hits)
			assert.Equal(t, wall.counts, virtual.counts)
		})
	}
}
