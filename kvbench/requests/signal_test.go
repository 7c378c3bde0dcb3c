package requests

import (
	"context"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench"
	"kvbench/kvbench/result"
	"kvbench/tiers/buffer"
	"kvbench/tiers/faults"
	"kvbench/tiers/tiertest"
	"kvbench/workloads/users"
)

// onFiles is a run in a directory of its own, with prefill and decoding, below a link that
// takes the time of a bubble: files take none.
func onFiles(t *testing.T, workers int) runConfig {
	t.Helper()
	src := population(20, func(u *users.Config) { u.Rate = 1e4 })
	cfg := testConfig(nil, src, workers).lasting(time.Hour)
	cfg.Planner.Sizer.BytesPerToken = 64 // a megabyte or so for an entry
	cfg.Storage = kvbench.StorageConfig{
		StorageBytes: 8 << 20, CacheDir: filepath.Join(t.TempDir(), "cache"), Direct: true,
		Use:      buffer.Use{Chunk: 16 * unit, Depth: 2, MaxWriters: 2, Workers: workers},
		GPUBytes: 4 << 20, GPUBandwidth: 20 << 20,
	}
	return cfg
}

// files counts the entries that a run has on disk.
func files(t *testing.T, cfg runConfig) int {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(cfg.Storage.CacheDir, "rank_0", "??", "*"))
	require.NoError(t, err)
	return len(all)
}

func TestAnInterruptionEndsAnyStageInOrder(t *testing.T) {
	for _, stage := range []string{"preconditioning", "filling", "resting", "warming up",
		"running"} {
		synctest.Test(t, func(t *testing.T) {
			cfg := onFiles(t, 4)
			ctx, cancel := context.WithCancelCause(t.Context())
			switch stage {
			case "preconditioning":
				cfg.Precondition = Precondition{Bytes: 1 << 40, Threads: 3}
			case "filling":
				cfg.Population = Population{Entries: 20, Tokens: 2048}
			case "resting":
				cfg.Settle = time.Hour
			case "warming up":
				cfg.Warmup = time.Hour
			}
			if stage == "filling" {
				interrupt(cancel) // before it begins: it takes no time to speak of
			}
			cfg.Progress = func(s kvbench.Snapshot) {
				if s.Stage == stage {
					interrupt(cancel)
				}
			}
			left := -1
			cfg.Publish = func(r *result.Result) error {
				left = files(t, cfg)
				assert.Equal(t, result.StatusIncomplete, r.Status)
				return r.WriteJSON(filepath.Join(t.TempDir(), "result.json"))
			}
			r, err := runLoad(ctx, cfg)
			require.ErrorIs(t, err, assert.AnError)
			var sig kvbench.Interrupted
			require.ErrorAs(t, err, &sig)
			assert.Equal(t, result.StatusIncomplete, r.Status)
			assert.Equal(t, result.EndedBySignal, r.EndedBy)
			assert.Contains(t, r.Error, "interrupted")
			if stage == "running" || stage == "warming up" || stage == "preconditioning" {
				assert.Positive(t, left, "the result is safe before the files go")
			}
			assert.NoDirExists(t, cfg.Storage.CacheDir)
			if stage == "running" {
				checkLoad(t, r)
				assert.Positive(t, r.Requests.Completed)
			}
		})
	}
}

// stuck is a storage tier whose calls of one kind never return before release;
// entered is closed when two are in it.
func stuck(call faults.Call) (tier *faults.Files, entered, release chan struct{}) {
	entered, release = make(chan struct{}), make(chan struct{})
	tier = faults.Wrap(tiertest.NewNull(), func(_ context.Context, e faults.Event) error {
		if e.Call == call {
			if e.N == 2 {
				close(entered)
			}
			<-release // whatever the context says: a device that hangs
		}
		return nil
	})
	return tier, entered, release
}

// A device that does not answer cannot hold up the result, nor the end.
func TestAnInterruptionDoesNotWaitForAStuckDevice(t *testing.T) {
	for _, stage := range []string{"running", "preconditioning"} {
		synctest.Test(t, func(t *testing.T) {
			tier, entered, release := stuck(faults.Commit)
			defer close(release)
			cfg := testConfig(storage(tier, 1<<40), newScript(singles(5, 1)...),
				2).lasting(time.Hour)
			if stage == "preconditioning" {
				cfg.Precondition = Precondition{Bytes: 1 << 30, Threads: 2, Tokens: 1}
			}
			ctx, cancel := context.WithCancelCause(t.Context())
			var begin, published time.Time
			cfg.Publish = func(*result.Result) error { published = time.Now(); return nil }
			go func() {
				<-entered
				synctest.Wait() // until both workers are stuck
				begin = time.Now()
				interrupt(cancel)
			}()
			r, err := runLoad(ctx, cfg)
			require.ErrorIs(t, err, assert.AnError)
			assert.Equal(t, result.StatusIncomplete, r.Status)
			assert.LessOrEqual(t, published.Sub(begin), 500*time.Millisecond, stage)
			assert.LessOrEqual(t, time.Since(begin), 2*time.Second, stage)
			if stage == "running" {
				assert.EqualValues(t, 2, r.Load["total"].InFlight)
				checkLoad(t, r)
			}
		})
	}
}

// After a run has returned, it reports no progress, and reads none of its files.
func TestProgressEndsWithTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		over := false // unsynchronised on purpose: the race detector is the judge
		shown := make(chan struct{}, 1)
		ctx, cancel := context.WithCancelCause(t.Context())
		cfg := onFiles(t, 2)
		cfg.Storage.FreeFloor = 1
		cfg.Progress = func(kvbench.Snapshot) {
			_ = over
			select {
			case shown <- struct{}{}:
				go interrupt(cancel)
			default:
			}
		}
		_, err := runLoad(ctx, cfg)
		over = true
		require.ErrorIs(t, err, assert.AnError)
		<-shown
	})
}

func TestAFilesystemThatRunsShortEndsTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, fill := range []bool{false, true} {
			cfg := onFiles(t, 2)
			cfg.Storage.FreeFloor = 1 << 60
			if fill {
				cfg.Precondition = Precondition{Bytes: 1 << 40}
			}
			r, err := runLoad(t.Context(), cfg)
			require.ErrorContains(t, err, "must stay free")
			assert.ErrorContains(t, err, "-storage-capacity-gb")
			assert.Equal(t, result.StatusFailed, r.Status)
			assert.Equal(t, result.EndedByCapacity, r.EndedBy, "filling: %v", fill)
			assert.NoDirExists(t, cfg.Storage.CacheDir)
		}
	})
}
