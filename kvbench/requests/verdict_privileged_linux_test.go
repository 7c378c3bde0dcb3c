package requests

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"kvbench/kvbench"
	"kvbench/kvbench/plainio"
	"kvbench/kvbench/result"
	"kvbench/tiers/buffer"
	"kvbench/tiers/privtest"
	"kvbench/tracing/host"
)

// The rules of a verdict are tested without a device, in virtual time (verdict_test.go) and with
// given numbers (package verdict). Here a real kernel counts the discards of the window and those
// of another process during the queue-depth sweep. No rate or share of time is compared, because
// these depend on the machine's other work.
func TestDiscardsAreCountedForTheVerdict(t *testing.T) {
	disk := privtest.LoopFS(t, 640, privtest.LoopOptions{DirectIO: true, Discard: true,
		Times: privtest.Times{Discard: 20 * time.Millisecond}})
	const mebibyte = 1 << 20 / unit // tokens
	cfg := testConfig(nil, newScript(singles(32, mebibyte)...), 4).finite()
	cfg.Storage = kvbench.StorageConfig{ // holds a quarter of what is written
		StorageBytes: 8 << 20, CacheDir: disk.Dir + "/cache", Direct: true,
		Use: buffer.Use{Chunk: 64 << 10, Depth: 1, Workers: 4},
	}
	remove := otherFiles(t, disk.Dir, 12)
	cfg.Climb = func(ctx context.Context, e *kvbench.Env, l kvbench.Ladder) ([]result.Rung, error) {
		remove()
		l.Time, l.Bytes, l.Room, l.FileSize = time.Second, 60<<20, 200<<20, 512<<10
		return plainio.Climb(ctx, e, l)
	}
	r := mustRun(t, cfg)
	w := r.DeviceWitness
	assert.GreaterOrEqual(t, *w.WriteBytes, int64(32<<20))
	assert.Positive(t, *w.DiscardIOs)
	assert.Positive(t, *w.DiscardBytes)
	assert.Positive(t, *w.DiscardNS)
	require.NotNil(t, r.Harness.Ladder)
	require.NotNil(t, r.Harness.Ladder.DiscardShare)
	assert.Positive(t, *r.Harness.Ladder.DiscardShare)
	assert.NotEmpty(t, r.Harness.Ladder.Rungs)
}

// otherFiles makes files whose removal costs a discard each: between two of them lies one that
// stays. remove returns when the filesystem has committed the removals; the discards follow.
func otherFiles(t *testing.T, dir string, n int) (remove func()) {
	t.Helper()
	name := func(i int) string { return filepath.Join(dir, strconv.Itoa(i)) }
	for i := range 2 * n {
		f, err := os.Create(name(i))
		require.NoError(t, err)
		require.NoError(t, unix.Fallocate(int(f.Fd()), 0, 0, 1<<20))
		require.NoError(t, f.Close())
	}
	require.NoError(t, host.SyncFilesystem(dir))
	return func() {
		for i := range n {
			assert.NoError(t, os.Remove(name(2*i)))
		}
		assert.NoError(t, host.SyncFilesystem(dir))
	}
}
