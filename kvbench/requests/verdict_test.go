package requests

import (
	"context"
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
	"kvbench/tiers/sim"
	"kvbench/tiers/tiertest"
	"kvbench/tiers/transfer"
	"kvbench/tracing/host"
)

// device is a simulated one: 100 MiB/s behind a latency of 1 ms, 64 requests at a time.
func device() *tiers.DeviceModel {
	return &tiers.DeviceModel{Read: 100 << 20, Write: 100 << 20, ReadLatency: time.Millisecond,
		WriteLatency: time.Millisecond, Parallelism: 64}
}

// says checks the verdict, and what bounded the number in flight.
func says(t *testing.T, r *result.Result, kind, bound, reason string) {
	t.Helper()
	v := r.Harness.Verdict
	assert.Equal(t, kind, v.Kind, v.Reason)
	assert.Equal(t, bound, v.Bound, v.Reason)
	assert.Contains(t, v.Reason, reason)
}

// many is a load that keeps n workers busy, with entries of that many chunks.
func many(n, workers, chunks int) runConfig {
	return testConfig(nil, newScript(singles(n, chunks)...), workers).finite()
}

func simulate(t *testing.T, cfg runConfig, m *tiers.DeviceModel) *result.Result {
	t.Helper()
	cfg.Storage.StorageBytes = 1 << 40
	r, err := simulateLoad(t.Context(), cfg, kvbench.SimConfig{Device: m})
	require.NoError(t, err)
	return r
}

func TestVerdictsOfSimulatedDevices(t *testing.T) {
	tiertest.OneThread(t)
	few, slots := many(2000, 64, 1), device()
	few.Storage.MaxWriters, slots.Parallelism = 2, 4
	// 4 KiB take 39 µs of the medium behind 1 ms: it is full from 27 requests on.
	says(t, simulate(t, many(5000, 64, 1), device()), result.StorageLimited, "",
		"and takes 64 I/O requests at a time")
	says(t, simulate(t, many(2000, 64, 1), slots), result.StorageLimited, "",
		"and takes 4 I/O requests at a time")
	says(t, simulate(t, many(1000, 1, 1), device()), result.LatencyLimited, result.BoundWorkers,
		"the number of workers (1, each with 1 at most")
	says(t, simulate(t, many(200, 2, 64), device()), result.LatencyLimited, result.BoundDepth,
		"each of 2 workers had 1 at most")
	says(t, simulate(t, few, device()), result.LatencyLimited, result.BoundWriteLimit, "2 at a time")
}

// onLink is a run in the time of a bubble on a tier over a storage that moves one token per
// millisecond, and in which no goroutine waits for a processor: on a busy machine milliseconds of a
// bubble take seconds.
func onLink(t *testing.T, n, workers int, tier func(tiers.Files, clock.Clock) tiers.Files) runConfig {
	t.Helper()
	wall := clock.NewWall()
	link := sim.NewLink(1000*unit, wall)
	cfg := many(n, workers, 1)
	cfg.Clock, cfg.Storage.Levels = wall, storage(tier(link, wall), 1<<40)
	cfg.Usage = func() host.Usage { return host.Usage{} }
	return cfg
}

// slowExtent takes its time in the tier, and where a chunk's content is made.
type slowExtent struct {
	tiers.Files
	clock clock.Clock
}

func (s slowExtent) Create(ctx context.Context, objs ...tiers.Object) (tiers.Writer, error) {
	_ = s.clock.Sleep(ctx, time.Millisecond)
	w, err := s.Files.Create(ctx, objs...)
	return slowWriter{w, s.clock}, err
}

type slowWriter struct {
	tiers.Writer
	clock clock.Clock
}

func (w slowWriter) Start(i int) int64 {
	_ = w.clock.Sleep(context.Background(), time.Millisecond)
	return w.Writer.Start(i)
}

// The storage waits while data is generated with nothing in flight.
func TestASlowGeneratorIsTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// Of the tiers without a device the only one with bytes: two milliseconds each go by while
		// they are made, and one when they are counted.
		r := mustRun(t, onLink(t, 50, 4, func(_ tiers.Files, c clock.Clock) tiers.Files {
			return slowExtent{tiertest.Memory(t, 1<<20), c}
		}))
		says(t, r, result.CPULimited, "", "generating data 75 %")
	})
}

// Deletions take as long as three writes.
func TestDeletionsAreTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := onLink(t, 200, 2, func(link tiers.Files, c clock.Clock) tiers.Files {
			return faults.Wrap(link, func(ctx context.Context, e faults.Event) error {
				if e.Call != faults.Remove {
					return nil
				}
				return c.Sleep(ctx, 3*time.Millisecond)
			})
		})
		cfg.Storage.Levels[0].Capacity = 8 * unit
		says(t, mustRun(t, cfg), result.DiscardLimited, "", "deleting entries took")
	})
}

// Eight workers write into one small tier, whose victims move to a large one or leave a small one. The verdict
// names the tier that was too small.
func TestTheTierThatIsTooSmall(t *testing.T) {
	for _, c := range []struct {
		cpu, storage int64
		flag         string
	}{{3, 1 << 20, "cpu tier, until the entries to evict were no longer read or written (-cpu-mem-gb)"},
		{40, 3, "storage tier, until the entries to evict were no longer read or written (-storage-capacity-gb)"}} {
		synctest.Test(t, func(t *testing.T) {
			cfg := onLink(t, 400, 8, func(link tiers.Files, _ clock.Clock) tiers.Files { return link })
			cfg.Storage.Levels[0].Capacity = c.storage * unit
			cfg.Storage.Levels = append([]cache.Level{{Kind: tiers.CPU, Tier: transfer.New(tiertest.NewNull(), nil),
				Capacity: c.cpu * unit}}, cfg.Storage.Levels...)
			r := mustRun(t, cfg)
			says(t, r, result.CapacityLimited, "", c.flag)
			assert.Equal(t, r.Tier("cpu").RoomNS+r.Tier("storage").RoomNS, r.Harness.Busy.RoomNS)
		})
	}
}
