package requests

import (
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"kvbench/kvbench"
	"kvbench/kvbench/result"
	"kvbench/tiers/buffer"
	"kvbench/tiers/privtest"
	"kvbench/workloads"
)

// onDevice is a run on a filesystem of the test's own with entries of two
// megabytes and half as many bytes read as written.
func onDevice(dir string, workers int) runConfig {
	var all []*workloads.Request
	for user := range 40 {
		all = append(all, conversation(user, 2, 512, workloads.PrefillOnly)...)
	}
	cfg := testConfig(nil, newScript(all...), workers).finite()
	cfg.Storage = kvbench.StorageConfig{
		StorageBytes: 48 << 20, CacheDir: dir, Direct: true,
		Use: buffer.Use{Chunk: 1 << 20, Depth: 2, Workers: workers},
	}
	return cfg
}

func TestTheKernelSawTheSameBytes(t *testing.T) {
	fs := privtest.LoopFS(t, 96, privtest.LoopOptions{DirectIO: true, NoJournal: true})
	cfg := onDevice(fs.Dir, 1) // in order: no read finds its entry being written
	r := mustRun(t, cfg)
	w := r.DeviceWitness
	require.Equal(t, fs.Name, w.Device, w.Reason)
	assert.EqualValues(t, 80*2<<20, w.AppWriteBytes)
	assert.EqualValues(t, 40*2<<20, w.AppReadBytes)
	assert.InDelta(t, 1, *w.WriteRatio, 0.01, "%d of %d bytes", *w.WriteBytes, w.AppWriteBytes)
	assert.InDelta(t, 1, *w.ReadRatio, 0.01, "%d of %d bytes", *w.ReadBytes, w.AppReadBytes)
	assert.False(t, *w.ServedFromCache)
	assert.Equal(t, "direct", r.IO.Mode)
}

func TestPreconditioningTellsOfAFullDisk(t *testing.T) {
	fs := privtest.LoopFS(t, 24, privtest.LoopOptions{})
	require.NoError(t, os.WriteFile(fs.Dir+"/mine.npy", []byte("mine"), 0o644))
	cfg := onDevice(fs.Dir+"/cache", 2)
	cfg.Storage.StorageBytes = 1 << 30 // more than there is
	cfg.Precondition = Precondition{Bytes: 2 << 30, Tokens: 512}
	r, err := runLoad(t.Context(), cfg)
	require.ErrorIs(t, err, unix.ENOSPC)
	assert.ErrorContains(t, err, "preconditioning filled the disk after")
	assert.ErrorContains(t, err, strconv.Itoa(2<<30))
	assert.ErrorContains(t, err, "-storage-capacity-gb")
	assert.Contains(t, r.Error, "preconditioning filled the disk after")
	assert.Equal(t, result.StatusFailed, r.Status)
	require.NotNil(t, r.Precondition)
	assert.Positive(t, r.Precondition.Bytes)
	left, err := os.ReadDir(fs.Dir)
	require.NoError(t, err)
	for _, e := range left {
		assert.Contains(t, []string{"mine.npy", "lost+found"}, e.Name())
	}
}

func TestAFullDiskAndAReadOnlyRemountEndTheTrial(t *testing.T) {
	fs := privtest.LoopFS(t, 24, privtest.LoopOptions{})
	cfg := onDevice(fs.Dir+"/cache", 2)
	cfg.Storage.StorageBytes = 1 << 30
	r, err := runLoad(t.Context(), cfg)
	require.ErrorIs(t, err, unix.ENOSPC)
	assert.Equal(t, result.StatusFailed, r.Status)
	assert.Equal(t, "ENOSPC", r.Errors[0].Errno)
	assert.NoDirExists(t, fs.Dir+"/cache")

	cfg = onDevice(fs.Dir+"/cache", 2)
	cfg.Storage.StorageBytes = 8 << 20
	cfg.OnDispatch = func(r *workloads.Request, _ []workloads.Op) {
		if r.Seq == 20 {
			// The kernel refuses while a file is open for writing: this has to fall between two
			// entries.
			for unix.Mount(fs.Path, fs.Dir, "ext4", unix.MS_REMOUNT|unix.MS_RDONLY,
				"") == unix.EBUSY {
				runtime.Gosched()
			}
		}
	}
	cfg.Workers = 1
	published := false
	cfg.Publish = func(*result.Result) error { published = true; return nil }
	r, err = runLoad(t.Context(), cfg)
	fs.Remount(t, false)
	require.ErrorIs(t, err, unix.EROFS)
	assert.True(t, published)
	assert.Equal(t, result.StatusFailed, r.Status)
	assert.Equal(t, "EROFS", r.Errors[0].Errno)

	cfg = onDevice(fs.Dir+"/cache", 1)
	cfg.Storage.StorageBytes = 8 << 20
	r, err = runLoad(t.Context(), cfg)
	require.NoError(t, err)
	assert.Contains(t, strings.Join(r.Warnings, "\n"), "reclaimed")
}
