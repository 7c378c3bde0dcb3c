package e2e

import (
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"kvbench/kvbench/result"
	"kvbench/tiers/privtest"
)

// microLoad is a run of small entries on a disk of 64 MiB until something ends it.
func (b *bench) microLoad() []string {
	return append(append(b.micro(), b.places()...), "-test.bench=PrefillOnly",
		"-test.benchtime=10m", "-storage-capacity-gb=0.03", "-num-users=8")
}

// loopBench has its cache directory, with a user's files, on a small filesystem of its own.
func loopBench(t testing.TB) (b *bench, disk *privtest.Loop, before map[string]string) {
	t.Helper()
	binary(t)
	disk = privtest.LoopFS(t, 64, privtest.LoopOptions{})
	b = newBench(t)
	b.cache = filepath.Join(disk.Dir, "user/cache")
	return b, disk, tree(t, userFiles(t, b.cache))
}

func TestAFullDiskEndsTheRun(t *testing.T) {
	t.Parallel()
	b, disk, before := loopBench(t)
	p := b.start(b.microLoad()...)
	b.working()
	fill := filepath.Join(disk.Dir, "filler")
	stop := fillUp(t, fill)
	o := p.end()
	stop()
	assert.Equal(t, exitFailed, o.code)
	r := theResult(t, b.results)
	assert.Equal(t, result.StatusFailed, r.Status)
	assert.Contains(t, r.Error, "no space left on device")
	assert.Contains(t, r.Error, "-storage-capacity-gb")
	assert.Contains(t, o.stdout, "no space left on device")
	assert.Equal(t, before, tree(t, filepath.Dir(b.cache)))

	o = b.run(b.few(b.places()...)...)
	assert.Equal(t, exitParameters, o.code, "a full disk is reported before anything is made")
	assert.Contains(t, o.stderr, " is full (")
	assert.Regexp(t, `-results-dir: must be a directory in which 4 MiB can be written.*no space left`,
		b.refused("-test.bench=Synthetic", "-cache-dir", filepath.Join(t.TempDir(), "cache"),
			"-results-dir", filepath.Join(disk.Dir, "results")))
	require.NoError(t, os.Remove(fill))
	b.ok(b.few(append(b.places(), "-storage-capacity-gb=0.03")...)...)
	assert.Equal(t, before, tree(t, filepath.Dir(b.cache)))
}

// fillUp writes a file that takes all free space, also what is freed later, until it is stopped.
func fillUp(t testing.TB, path string) (stop func()) {
	t.Helper()
	f, err := os.Create(path)
	require.NoError(t, err)
	var wg sync.WaitGroup
	over := make(chan struct{})
	wg.Go(func() {
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for size := 1 << 20; ; {
			_, err := f.Write(make([]byte, size))
			switch {
			case err == nil:
				continue
			case size > 4096:
				size /= 2
				continue
			}
			select {
			case <-over:
				_ = f.Close()
				return
			case <-tick.C:
			}
		}
	})
	return func() { close(over); wg.Wait() }
}

func TestAReadOnlyRemountEndsTheRun(t *testing.T) {
	t.Parallel()
	b, disk, before := loopBench(t)
	p := b.start(b.microLoad()...)
	b.working()
	remount := func(flags uintptr) error {
		return unix.Mount(disk.Path, disk.Dir, "ext4", unix.MS_REMOUNT|unix.MS_NOATIME|flags, "")
	}
	// Busy as long as an entry is being written.
	eventually(t, "a moment without a writer",
		func() bool { return remount(unix.MS_RDONLY) == nil })
	assert.Equal(t, exitFailed, p.end().code)
	r := theResult(t, b.results)
	assert.Equal(t, result.StatusFailed, r.Status)
	assert.Contains(t, r.Error, "read-only file system")
	now := tree(t, filepath.Dir(b.cache))
	for name, text := range before {
		assert.Equal(t, text, now[name], name)
	}
	require.NoError(t, remount(0))
	b.ok(b.few(append(b.places(), "-storage-capacity-gb=0.03")...)...)
	assert.Equal(t, before, tree(t, filepath.Dir(b.cache)), "the next run reclaims everything")
}

// The next run removes what an earlier run left before it writes: it needs no bigger disk.
func TestWhatAnEarlierRunLeftIsRemovedFirst(t *testing.T) {
	t.Parallel()
	b, _, _ := loopBench(t)
	args := append(b.places(), "-test.bench=StorageCeiling/op=write",
		"-storage-capacity-gb=0.045", "-ceiling-size-gb=0.04")
	b.ok(append(args, "-keep-files")...)
	var fs syscall.Statfs_t
	require.NoError(t, syscall.Statfs(b.cache, &fs))
	require.Less(t, int64(fs.Bavail)*fs.Bsize, int64(24<<20), "too little for another one")
	o := b.ok(args...)
	assert.Contains(t, o.stderr+o.stdout, "reclaimed")
	assert.False(t, exists(filepath.Join(b.cache, "rank_0")), "kept files are gone")
}
