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
		StorageBytes: 8 << 20, Direct: true,
		Roots:    []kvbench.Root{{Dir: filepath.Join(t.TempDir(), "cache")}},
		Use:      buffer.Use{Chunk: 16 * unit, Depth: 2, MaxWriters: 2, Workers: workers},
		GPUBytes: 4 << 20, GPUBandwidth: 20 << 20,
	}
	return cfg
}

// After a run has returned, it reports no progress, and reads none of its files.
func TestProgressEndsWithTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		over := false // unsynchronised on purpose: the race detector is the judge
		shown := make(chan struct{}, 1)
		ctx, cancel := context.WithCancelCause(t.Context())
		cfg := onFiles(t, 2)
		cfg.Storage.Roots[0].Floor = 1
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
			cfg.Storage.Roots[0].Floor = 1 << 60
			if fill {
				cfg.Precondition = Precondition{Bytes: 1 << 40}
			}
			r, err := runLoad(t.Context(), cfg)
			require.ErrorContains(t, err, "must stay free")
			assert.ErrorContains(t, err, "-storage-capacity-gb")
			assert.Equal(t, result.StatusFailed, r.Status)
			assert.Equal(t, result.EndedByCapacity, r.EndedBy, "filling: %v", fill)
			assert.NoDirExists(t, cfg.Storage.Roots[0].Dir)
		}
	})
}
