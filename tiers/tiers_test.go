package tiers_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/tiers"
)

// ownedDir returns a directory of our own on the test's disk.
func ownedDir(t *testing.T) *tiers.OwnedDir {
	t.Helper()
	d, err := tiers.OpenOwnedDir(tiers.OwnedOptions{CacheDir: t.TempDir(), Nonce: "test"})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, d.Close()) })
	return d
}

func fileTier(t *testing.T, direct bool) *tiers.FileTier {
	t.Helper()
	f, err := tiers.NewFileTier(ownedDir(t), tiers.FileOptions{Direct: direct})
	require.NoError(t, err)
	if direct && !f.Direct() {
		t.Skipf("no direct I/O here: %v", f.Warnings())
	}
	return f
}

func packTier(t *testing.T, direct bool, opt tiers.PackOptions) *tiers.PackTier {
	t.Helper()
	p, err := tiers.NewPackTier(ownedDir(t), tiers.FileOptions{Direct: direct}, opt)
	skipWithoutHoles(t, err)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, p.Close()) })
	return p
}

// chunkTier has files that no chunk of the tests divides.
func chunkTier(t *testing.T, direct bool) *tiers.ChunkTier {
	t.Helper()
	c, err := tiers.NewChunkTier(ownedDir(t), tiers.FileOptions{Direct: direct}, 100_000)
	require.NoError(t, err)
	return c
}

func cpuTier(t *testing.T, capacity int64) *tiers.CPUTier {
	t.Helper()
	c, err := tiers.NewCPUTier(capacity)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, c.Close()) })
	return c
}

var content = tiers.NewContent([16]byte{7}, 0)

func gpuTier(t *testing.T) *tiers.GPUTier {
	t.Helper()
	start := time.Now()
	g, err := tiers.NewGPUTier(64e9, func(ctx context.Context, d time.Duration) error {
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
	t.Run("packed", func(t *testing.T) { run(t, packTier(t, true, tiers.PackOptions{Places: 3})) })
	t.Run("packed, buffered", func(t *testing.T) { run(t, packTier(t, false, tiers.PackOptions{Places: 3})) })
	t.Run("grouped", func(t *testing.T) { run(t, packTier(t, true, tiers.PackOptions{Places: 4, Grouped: true})) })
	t.Run("chunk files", func(t *testing.T) { run(t, chunkTier(t, true)) })
	t.Run("chunk files, buffered", func(t *testing.T) { run(t, chunkTier(t, false)) })
	t.Run("gpu", func(t *testing.T) { run(t, gpuTier(t)) })
	t.Run("null", func(t *testing.T) { run(t, tiers.NewNullTier()) })
}

// transfer returns settings for tests, with a pool that must be whole again at the end.
func transfer(t *testing.T, chunk, depth int) *tiers.Transfer {
	t.Helper()
	pool, err := tiers.NewPool(16, chunk)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, pool.Close(), "every buffer is back") })
	start := time.Now()
	return &tiers.Transfer{
		Pool: pool, Content: content, Chunk: chunk, Depth: depth, Verify: tiers.VerifyFull,
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
