package checkpoint

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"kvbench/kvbench"
	"kvbench/kvbench/result"
	"kvbench/tiers"
	"kvbench/tiers/filetier"
	"kvbench/tiers/privtest"
	files "kvbench/workloads/checkpoint"
)

// TestColdReadsAreProven on a loop device of its own, whose counters count this test's bytes only.
// Bytes that were written through the page cache and not dropped from it are read from memory, and
// the result shows it; dropped bytes, and those of direct I/O, come from the device.
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

// TestADeviceThatFailsLeavesNothing: in the third file the filesystem is full, or the device fails
// to write pages that the page cache accepted, and only the flush reports that. The error and the
// result name the file, and nothing of the checkpoint stays; foreign files stay.
func TestADeviceThatFailsLeavesNothing(t *testing.T) {
	for name, c := range map[string]struct {
		direct, device bool // the filesystem or device with space for two and a half files
		errno          unix.Errno
		says           string
	}{
		"full, direct":   {true, false, unix.ENOSPC, "preallocate"},
		"full, buffered": {false, false, unix.ENOSPC, "write"},
		"failing flush":  {false, true, unix.EIO, "flush"},
		"failing write":  {true, true, unix.EIO, "write"},
	} {
		t.Run(name, func(t *testing.T) {
			fs := privtest.LoopFS(t, 64, privtest.LoopOptions{CanHang: c.device})
			full := fs.Dir
			if c.device {
				full = fs.Memory
			}
			// One accelerator, whose files follow each other.
			r := &runs{dir: filepath.Join(fs.Dir, "cache"), spec: specOf(t, "405b", 1, 256)}
			r.with = func(cfg *kvbench.Config, load *Config) {
				cfg.Storage.Direct, cfg.Storage.Advice = c.direct, filetier.AdviseNothing
			}
			// A foreign file among those of an earlier run, whose size is negligible.
			earlier := *r
			earlier.spec = specOf(t, "405b", 1, 65536)
			_, err := earlier.run(t, tiers.Write, 1, true)
			require.NoError(t, err)
			foreign := filepath.Join(r.dir, r.spec.Folder(), files.Step(1), "mine")
			require.NoError(t, os.WriteFile(foreign, []byte("mine"), 0o644))
			mine, err := os.Stat(foreign)
			require.NoError(t, err)
			list := r.spec.Files(0)
			leave(t, full, list[0].Bytes+list[1].Bytes+list[2].Bytes/2)
			res, err := r.run(t, tiers.Write, 1, true)
			require.ErrorIs(t, err, c.errno)
			failing := list[2].Name
			if c.direct && c.device { // the probe of direct writes leaves blocks of the device written: one file more or less fits
				at := slices.IndexFunc(list, func(f files.File) bool { return strings.Contains(err.Error(), f.Name) })
				require.Positive(t, at, "the first file fits: %v", err)
				failing = list[at].Name
			}
			assert.ErrorContains(t, err, failing)
			assert.ErrorContains(t, err, c.says)
			assert.Equal(t, c.errno == unix.ENOSPC, strings.Contains(err.Error(), "-checkpoint-keep"))
			assert.Equal(t, result.StatusFailed, res.Status)
			assert.Contains(t, res.Error, failing)
			rel, _ := filepath.Rel(r.dir, foreign)
			assert.Equal(t, map[string]int64{rel: 4}, r.tree(t), "only the foreign file is left")
			after, err := os.Stat(foreign)
			require.NoError(t, err)
			assert.Equal(t, mine.ModTime(), after.ModTime())
		})
	}
}

// leave fills a filesystem but for some bytes.
func leave(t *testing.T, dir string, bytes int64) {
	t.Helper()
	unix.Sync()
	var st unix.Statfs_t
	require.NoError(t, unix.Statfs(dir, &st))
	f, err := os.Create(filepath.Join(dir, "fill"))
	require.NoError(t, err)
	defer f.Close()
	require.NoError(t, unix.Fallocate(int(f.Fd()), 0, 0, int64(st.Bavail)*st.Bsize-bytes))
	unix.Sync()
}
