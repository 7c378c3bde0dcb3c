package checkpoint

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench"
	"kvbench/tiers"
	"kvbench/tiers/buffer"
	"kvbench/tiers/content"
	files "kvbench/workloads/checkpoint"
)

// TestTheLargestCheckpoints writes those of 405b and 1t in full size, 22 TB in all, of which only
// the first and the last chunk of each file are there: names, exact lengths, and what lies at
// offsets far above 4 GiB.
func TestTheLargestCheckpoints(t *testing.T) {
	switch {
	case testing.Short():
		t.Skip("thousands of files are made and flushed: it runs without -short")
	case buffer.RaceEnabled:
		t.Skip("it has as many goroutines as accelerators and no more to show with the race detector")
	}
	for key, want := range map[string]int{"405b": 1544, "1t": 2072} {
		t.Run(key, func(t *testing.T) {
			r := &runs{dir: t.TempDir(), spec: specOf(t, key, 0, 1), ends: true}
			nonce := [16]byte{9}
			r.with = func(cfg *kvbench.Config, c *Config) {
				c.Buffers, c.Writers, c.Nonce = 2, 1, nonce
				cfg.Storage.Exactly = 2 * r.spec.Accelerators
				cfg.Storage.StorageBytes = 1 << 50
			}
			_, err := r.run(t, tiers.Write, 1, true)
			require.NoError(t, err)
			data, seen := content.New(nonce, 0), 0
			step := filepath.Join(r.dir, r.spec.Folder())
			for a := range r.spec.Accelerators {
				for _, f := range r.spec.Files(a) {
					seen++
					checkEnds(t, filepath.Join(step, files.Step(1), f.Name), object(1, f), data)
				}
			}
			assert.Equal(t, want, seen)
			found, err := os.ReadDir(filepath.Join(step, files.Step(1)))
			require.NoError(t, err)
			assert.Len(t, found, want)
		})
	}
}

// checkEnds compares the first and the last chunk of a file, and wants nothing between them.
func checkEnds(t *testing.T, path string, o tiers.Object, data *content.Content) {
	t.Helper()
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	info, err := f.Stat()
	require.NoError(t, err)
	require.Equal(t, o.Size, info.Size(), path)
	const slack = 64 << 10 // for what the filesystem needs to find blocks far apart
	require.LessOrEqual(t, info.Sys().(*syscall.Stat_t).Blocks*512, int64(2*testChunk+slack))
	p := make([]byte, testChunk)
	for _, off := range []int64{0, (o.Size - 1) / testChunk * testChunk} {
		n, err := f.ReadAt(p[:min(testChunk, o.Size-off)], off)
		require.NoError(t, err)
		require.NoError(t, data.Check(p[:n], o, off))
	}
}
