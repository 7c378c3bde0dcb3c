package tiertest_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/tiers"
	"kvbench/tiers/buffer"
	"kvbench/tiers/content"
	"kvbench/tiers/filetier"
	"kvbench/tiers/memtier"
	"kvbench/tiers/sim"
	"kvbench/tiers/transfer"
	"kvbench/tiers/workdir"
)

// ownedDir returns a directory of our own on the test's disk.
func ownedDir(t *testing.T) *workdir.Dir {
	t.Helper()
	d, err := workdir.Open(workdir.Options{CacheDir: t.TempDir(), Nonce: "test"})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, d.Close()) })
	return d
}

func fileTier(t *testing.T, direct bool) *filetier.FileTier {
	t.Helper()
	f, err := filetier.NewFileTier(ownedDir(t), filetier.FileOptions{Direct: direct})
	require.NoError(t, err)
	if direct && !f.Direct() {
		t.Skipf("no direct I/O here: %v", f.Warnings())
	}
	return f
}

func packTier(t *testing.T, direct bool, opt filetier.PackOptions) *filetier.PackTier {
	t.Helper()
	p, err := filetier.NewPackTier(ownedDir(t), filetier.FileOptions{Direct: direct}, opt)
	skipWithoutHoles(t, err)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, p.Close()) })
	return p
}

// chunkTier has files that no chunk of the tests divides.
func chunkTier(t *testing.T, direct bool) *filetier.ChunkTier {
	t.Helper()
	c, err := filetier.NewChunkTier(ownedDir(t), filetier.FileOptions{Direct: direct}, 100_000)
	require.NoError(t, err)
	return c
}

func cpuTier(t *testing.T, capacity int64) *memtier.Tier {
	t.Helper()
	c, err := memtier.New(capacity)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, c.Close()) })
	return c
}

var data = content.New([16]byte{7}, 0)

func gpuTier(t *testing.T) *sim.Link {
	t.Helper()
	start := time.Now()
	g, err := sim.NewLink(64e9, func(ctx context.Context, d time.Duration) error {
		select {
		case <-time.After(d):
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}, func() time.Duration { return time.Since(start) })
	require.NoError(t, err)
	return g
}

// everyTier runs a test on each tier.
func everyTier(t *testing.T, run func(t *testing.T, tier tiers.Tier)) {
	t.Run("cpu", func(t *testing.T) { run(t, cpuTier(t, 32<<20)) })
	t.Run("direct", func(t *testing.T) { run(t, fileTier(t, true)) })
	t.Run("buffered", func(t *testing.T) { run(t, fileTier(t, false)) })
	t.Run("slots", func(t *testing.T) { run(t, slotTier(t)) })
	t.Run("packed", func(t *testing.T) { run(t, packTier(t, true, filetier.PackOptions{Places: 3})) })
	t.Run("packed, buffered", func(t *testing.T) { run(t, packTier(t, false, filetier.PackOptions{Places: 3})) })
	t.Run("grouped", func(t *testing.T) { run(t, packTier(t, true, filetier.PackOptions{Places: 4, Grouped: true})) })
	t.Run("chunk files", func(t *testing.T) { run(t, chunkTier(t, true)) })
	t.Run("chunk files, buffered", func(t *testing.T) { run(t, chunkTier(t, false)) })
	t.Run("gpu", func(t *testing.T) { run(t, gpuTier(t)) })
	t.Run("null", func(t *testing.T) { run(t, sim.NewNull()) })
}

// mover returns settings for tests, with a pool that must be whole again at the end.
func mover(t *testing.T, chunk, depth int) *transfer.Transfer {
	t.Helper()
	pool, err := buffer.NewPool(16, chunk)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, pool.Close(), "every buffer is back") })
	start := time.Now()
	return &transfer.Transfer{
		Pool: pool, Content: data, Chunk: chunk, Depth: depth, Verify: content.VerifyFull,
		Now: func() time.Duration { return time.Since(start) },
	}
}

// skipWithoutHoles skips a test of several entries per file where the platform has no holes; elsewhere the refusal is a
// failure.
func skipWithoutHoles(t testing.TB, err error) {
	t.Helper()
	if runtime.GOOS == "darwin" && errors.Is(err, tiers.ErrNotSupported) {
		t.Skip(err)
	}
}
