package plainio

import (
	"context"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench"
	"kvbench/kvbench/record"
	"kvbench/kvbench/result"
	"kvbench/tiers"
	"kvbench/tiers/buffer"
	"kvbench/tiers/cache"
	"kvbench/tiers/clock"
	"kvbench/tiers/faults"
	"kvbench/tiers/sim"
	"kvbench/tiers/tiertest"
	"kvbench/tiers/transfer"
)

// page is the size of a chunk in these tests.
const page = 4096

// onTier makes a tier the storage of a run.
func onTier(tier tiers.Files, capacity int64) []cache.Level {
	return []cache.Level{{Kind: tiers.Storage, Tier: transfer.New(tier, nil), Capacity: capacity}}
}

// slowTier is a storage tier that moves one page per second in each direction.
func slowTier(c clock.Clock, capacity int64) []cache.Level {
	return onTier(sim.NewLink(page, c), capacity)
}

type trialConfig = kvbench.Config

// plainRun is a trial of a routine.
type plainRun struct {
	trialConfig
	Config
}

func (c plainRun) lasting(window time.Duration) plainRun {
	c.Window = window
	return c
}

func runPlain(ctx context.Context, c plainRun, r Routine) (*result.Result, error) {
	return kvbench.Run(ctx, c.trialConfig, New(c.Config, r))
}

func overLevels(levels []cache.Level, workers int) plainRun {
	return plainRun{trialConfig{Storage: kvbench.StorageConfig{Levels: levels,
		Use: buffer.Use{Chunk: page, Depth: 1, Workers: workers}}}, Config{Workers: workers}}
}

// virtual is a trial in virtual time on a tier, which v is the clock of.
func virtual(v clock.Clock, tier tiers.Files, capacity int64, workers int) plainRun {
	cfg := overLevels(onTier(tier, capacity), workers)
	cfg.trialConfig.Clock, cfg.Storage.Simulated = v, true
	return cfg
}

// onModel is such a trial on a model of a device.
func onModel(v clock.Clock, m tiers.DeviceModel, capacity int64) plainRun {
	return virtual(v, sim.NewDevice(m, "a model", v), capacity, 1)
}

// Completions of the filling and of the warm-up do not count, and do not end the load.
func TestATierBenchmarkCountsOperations(t *testing.T) {
	for _, op := range []tiers.Op{tiers.Read, tiers.Write} {
		v := clock.NewVirtual()
		cfg := overLevels(slowTier(v, 100*page), 1).lasting(10500 * time.Millisecond)
		cfg.trialConfig.Clock, cfg.Storage.Simulated, cfg.Warmup = v, true, 5*time.Second
		r, err := runPlain(t.Context(), cfg, &Tier{Level: tiers.Storage, Op: op, Size: 2 * page})
		require.NoError(t, err)
		assert.Equal(t, result.StatusComplete, r.Status)
		assert.Equal(t, result.UnitOperation, r.CompletionUnit)
		assert.Equal(t, result.EndedByDeadline, r.EndedBy)
		traffic := r.Tiers[0].Read
		if op == tiers.Write {
			traffic = r.Tiers[0].Write
		}
		assert.EqualValues(t, 5, traffic.Operations)
		assert.EqualValues(t, 5*2*page, r.Moved.ReadBytes+r.Moved.WriteBytes)
		assert.Equal(t, int64(10500*time.Millisecond), r.WindowNS)
	}
}

// Files end the window when they fill the footprint; memory overwrites the oldest.
func TestATierBenchmarkStaysWithinItsFootprint(t *testing.T) {
	for _, kind := range []tiers.Kind{tiers.Storage, tiers.CPU} {
		var now, most, removed atomic.Int64 // entries, those being written included
		tier := faults.Wrap(tiertest.NewNull(), func(_ context.Context, e faults.Event) error {
			switch e.Call {
			case faults.Create:
				for n, was := now.Add(1), most.Load(); n > was && !most.CompareAndSwap(was, n); {
					was = most.Load()
				}
			case faults.Remove:
				now.Add(-1)
				removed.Add(1)
			}
			return nil
		})
		cfg := overLevels([]cache.Level{{Kind: kind, Tier: transfer.New(tier, nil), Capacity: 1000 * page}}, 4)
		cfg.Limit = 500
		r, err := runPlain(t.Context(), cfg,
			&Tier{Level: kind, Op: tiers.Write, Size: page, Footprint: 20 * page})
		require.NoError(t, err)
		assert.LessOrEqual(t, most.Load(), int64(20))
		assert.EqualValues(t, 20*page, r.PlainIO.FootprintBytes)
		if kind == tiers.CPU {
			assert.Equal(t, result.EndedByCount, r.EndedBy)
			assert.EqualValues(t, 500, r.Requests.Completed)
			continue
		}
		assert.Equal(t, result.EndedByFootprint, r.EndedBy)
		assert.Equal(t, result.StatusComplete, r.Status)
		assert.LessOrEqual(t, r.Requests.Completed, int64(20))
		assert.Zero(t, removed.Load(), "within the window")
	}
	cfg := overLevels(onTier(tiertest.NewNull(), 8*page), 4)
	_, err := runPlain(t.Context(), cfg, &Tier{Level: tiers.Storage, Op: tiers.Write, Size: page})
	require.ErrorIs(t, err, cache.ErrTooLarge)
	_, err = runPlain(t.Context(), cfg, &Tier{Level: tiers.GPU, Size: page})
	assert.ErrorContains(t, err, "no gpu tier")
}

// With several workers one may end an operation while another ends the last that counts.
func TestEveryCountOfATrialEndsWithTheSameOperation(t *testing.T) {
	for range 4 {
		cfg := overLevels(onTier(tiertest.NewNull(), 1000*page), 8)
		cfg.Limit = 50
		r, err := runPlain(t.Context(), cfg,
			&Tier{Level: tiers.Storage, Op: tiers.Write, Size: page})
		require.NoError(t, err)
		require.EqualValues(t, 50, r.Requests.Completed)
		require.EqualValues(t, 50, r.Requests.Operations)
		require.EqualValues(t, 50, r.Tiers[0].Write.Operations)
	}
}

func TestTheCeilingKeepsTheMixAndGivesItsBuffersBack(t *testing.T) {
	cfg := plainRun{Config: Config{Workers: 3, Phase: kvbench.Phase{Limit: 40}}}
	cfg.Storage = kvbench.StorageConfig{
		StorageBytes: 16 << 20, Roots: []kvbench.Root{{Dir: filepath.Join(t.TempDir(), "cache")}}, Direct: true,
		Use: buffer.Use{Chunk: 16 * page, Depth: 1, Workers: 3},
	}
	for _, share := range []float64{0, 0.5, 1} {
		r, err := runPlain(t.Context(), cfg, &Ceiling{ReadShare: share, InFlight: 3,
			Footprint: 8 << 20})
		require.NoError(t, err, "the pool is whole when the run ends")
		assert.Equal(t, result.StatusComplete, r.Status)
		read, wrote := float64(r.Tiers[0].Read.Operations), float64(r.Tiers[0].Write.Operations)
		assert.Positive(t, read+wrote)
		assert.InDelta(t, share*(read+wrote), read, 4, "of %v files", read+wrote)
		assert.NoDirExists(t, cfg.Storage.Roots[0].Dir)
	}
}

// broken is a routine whose steps fail.
type broken struct{ finished int }

func (b *broken) Prepare(context.Context, *Bench) error   { return nil }
func (b *broken) Step(context.Context, *Bench, int) error { return syscall.EIO }
func (b *broken) Finish(*Bench)                           { b.finished++ }

func TestARoutineThatFails(t *testing.T) {
	r := &broken{}
	res, err := runPlain(t.Context(), overLevels(onTier(tiertest.NewNull(), 1<<50), 2).lasting(time.Hour), r)
	assert.ErrorIs(t, err, syscall.EIO)
	assert.Equal(t, result.StatusFailed, res.Status)
	assert.Equal(t, result.EndedByError, res.EndedBy)
	assert.Equal(t, 1, r.finished)
}

// A signal may come while the trial waits for the device to discard, before Prepare.
func TestABenchThatWasNeverPrepared(t *testing.T) {
	for _, r := range []Routine{&Tier{}, &Blocks{}, &Knee{}, &Ceiling{}, &Removal{}, &Replay{}} {
		in := &record.Info{}
		b := New(Config{Workers: 3}, r)
		b.Report(in)
		assert.Equal(t, 3, in.Workload.Workers)
		assert.Zero(t, in.Harness)
		assert.NoError(t, b.Close())
	}
}
