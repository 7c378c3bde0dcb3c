package checkpoint

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"kvbench/kvbench"
	"kvbench/kvbench/result"
	"kvbench/tiers"
	"kvbench/tiers/filetier"
	"kvbench/tiers/privtest"
)

// TestColdReadsAreProven on a loop device of its own, whose counters count nobody else's bytes:
// what was written through the page cache and not taken out of it is read from memory, and told so;
// what was taken out, or never in, comes from the device.
func TestColdReadsAreProven(t *testing.T) {
	fs := privtest.LoopFS(t, 256, privtest.LoopOptions{})
	for _, c := range []struct {
		name   string
		direct bool
		advice filetier.Advice
		flush  Flush
		cold   bool
	}{
		{"buffered", false, filetier.AdviseNothing, FlushNone, false},
		{"emptied", false, filetier.AdviseNothing, FlushFadvise, true},
		{"advised", false, filetier.AdviseDrop, FlushNone, true},
		{"direct", true, filetier.AdviseDrop, FlushNone, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := &runs{dir: filepath.Join(fs.Dir, c.name), spec: specOf(t, "8b", 8, 4096)}
			r.with = func(cfg *kvbench.Config, load *Config) {
				cfg.Storage.Direct, cfg.Storage.Advice = c.direct, c.advice
				cfg.Storage.Exactly = 32
				load.Flush = c.flush
			}
			_, err := r.run(t, tiers.Write, 2, true)
			require.NoError(t, err)
			res, err := r.run(t, tiers.Read, 2, false)
			require.NoError(t, err)
			for _, read := range res.Checkpoint.Reads {
				require.NotNil(t, read.Cold)
				assert.Equal(t, c.cold, *read.Cold)
				cached := float64(*read.CachedBytes) / float64(read.Bytes)
				device := float64(*read.DeviceBytes) / float64(read.Bytes)
				t.Logf("%.3f in the page cache, %.3f from the device", cached, device)
				if c.cold {
					assert.LessOrEqual(t, cached, 0.01)
					assert.GreaterOrEqual(t, device, 0.95)
				} else {
					assert.GreaterOrEqual(t, cached, 0.90)
					assert.LessOrEqual(t, device, 0.05)
				}
			}
		})
	}
}

// TestAFullDiskLeavesNothing: the disk is full in a later file. The result says so, and nothing of
// the checkpoints stays; what lies beside them does.
func TestAFullDiskLeavesNothing(t *testing.T) {
	fs := privtest.LoopFS(t, 64, privtest.LoopOptions{})
	for _, direct := range []bool{true, false} {
		r := &runs{dir: filepath.Join(fs.Dir, "cache"), spec: specOf(t, "8b", 8, 2048)}
		r.with = func(cfg *kvbench.Config, load *Config) {
			cfg.Storage.Direct, cfg.Storage.Exactly = direct, 32
		}
		require.NoError(t, os.MkdirAll(r.dir, 0o755))
		foreign := filepath.Join(r.dir, "mine")
		require.NoError(t, os.WriteFile(foreign, []byte("mine"), 0o644))
		res, err := r.run(t, tiers.Write, 3, true)
		assert.True(t, errors.Is(err, unix.ENOSPC), "%v", err)
		assert.Equal(t, result.StatusFailed, res.Status)
		assert.Equal(t, map[string]int64{"mine": 4}, r.tree(t))
	}
}
