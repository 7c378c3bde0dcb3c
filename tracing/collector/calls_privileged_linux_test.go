//go:build linux && (amd64 || arm64)

package collector

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"kvbench/tiers/privtest"
	"kvbench/tracing"
	"kvbench/tracing/host"
)

var waysOfCalls = []string{byFexit, byTracepoint}

// startCalls starts a collector with the file layer. It skips the test if the kernel lacks the given
// way.
func startCalls(t testing.TB, opt Options) *Collector {
	t.Helper()
	opt.Level = tracing.LevelFile
	c := startFor(t, opt)
	file, why := c.common.FileAttach, c.common.NotBetter
	if file == byNothing {
		err := errors.New(strings.Join(why, "; "))
		if onMatrix() || opt.fileAttach == byTracepoint {
			privtest.Need(t, err)
		}
		t.Skip(err)
	}
	assert.Equal(t, opt.fileAttach, file)
	return c
}

// tracedCalls runs work in a window of the file layer.
func tracedCalls(t testing.TB, opt Options, work func()) *tracing.Trace {
	t.Helper()
	return inWindow(t, startCalls(t, opt), work)
}

// TestChainOfCalls expects the best available way, and the reasons against better ones.
func TestChainOfCalls(t *testing.T) {
	privtest.Root(t)
	if _, err := thisKernel(); err != nil {
		t.Skip(err)
	}
	c := startFor(t, Options{Level: tracing.LevelFile})
	file, why := c.common.FileAttach, c.common.NotBetter
	t.Logf("calls are seen by %s; %q", file, why)
	if file == byFexit {
		assert.Empty(t, why)
		return
	}
	assert.False(t, onMatrix(), "these kernels have fexit")
	assert.Equal(t, byTracepoint, file)
	require.Len(t, why, 1)
	assert.Contains(t, why[0], "calls by fexit: ")
	assert.NotContains(t, why[0], "MEMLOCK", "a misleading hint")
}

// TestEachCallCountsOnce makes calls of every kind and expects each once, whatever functions the
// kernel calls for it.
func TestEachCallCountsOnce(t *testing.T) {
	privtest.Root(t)
	l := privtest.LoopFS(t, 32, privtest.LoopOptions{NoJournal: true, PreferDirectIO: true})
	d, err := host.BackingDevice(l.Dir)
	require.NoError(t, err)
	const n, size = 50, 16 << 10
	for _, way := range waysOfCalls {
		for name, flags := range map[string]int{"buffered": 0, "direct": unix.O_DIRECT,
			"synchronous": unix.O_SYNC} {
			t.Run(way+"/"+name, func(t *testing.T) {
				buffer, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE,
					unix.MAP_ANON|unix.MAP_PRIVATE)
				require.NoError(t, err)
				t.Cleanup(func() { _ = unix.Munmap(buffer) })
				fd, err := unix.Open(filepath.Join(l.Dir, "calls"), unix.O_RDWR|unix.O_CREAT|flags,
					0o600)
				require.NoError(t, err)
				t.Cleanup(func() { _ = unix.Close(fd) })
				pieces := [][]byte{buffer[:size/2], buffer[size/2:]}
				must := func(want int) func(int, error) {
					return func(got int, err error) {
						require.NoError(t, err)
						require.Equal(t, want, got)
					}
				}
				rewind := func() { _, err := unix.Seek(fd, 0, 0); require.NoError(t, err) }
				tr := tracedCalls(t, Options{Device: d, fileAttach: way}, func() {
					for range n {
						rewind()
						must(size)(unix.Write(fd, buffer))
						must(size)(unix.Pwrite(fd, buffer, size))
						rewind()
						must(size)(unix.Writev(fd, pieces))
						must(size)(unix.Pwritev(fd, pieces, size))
						must(size)(unix.Pwritev2(fd, pieces, 0, 0))
						require.NoError(t, unix.Fsync(fd))
						require.NoError(t, unix.Fdatasync(fd))
						require.NoError(t, unix.Fadvise(fd, 0, 0, unix.FADV_DONTNEED))
						require.NoError(t, unix.Fadvise(fd, 0, 0, unix.FADV_RANDOM))
						rewind()
						must(size)(unix.Read(fd, buffer))
						must(size)(unix.Pread(fd, buffer, size))
						rewind()
						must(size)(unix.Readv(fd, pieces))
						must(size)(unix.Preadv(fd, pieces, size))
						must(size)(unix.Preadv2(fd, pieces, 0, 0))
					}
					must(0)(unix.Pread(fd, buffer, 1<<30)) // after the end of the file
				})
				// The kernel skips a run if a run of the same program on the processor is suspended,
				// and counts it as skipped. For system calls that happens since Linux 6.13.
				missed := float64(tr.Capture.Losses.Missed)
				assert.InDelta(t, 5*n+1, tr.VFSRead.Count, missed)
				assert.InDelta(t, 5*n, tr.VFSWrite.Count, missed)
				assert.InDelta(t, 5*n*size/1024, tr.VFSReadSize.Sum, missed*size/1024)
				assert.InDelta(t, 5*n*size/1024, tr.VFSWriteSize.Sum, missed*size/1024)
				assert.InDelta(t, 2*n, tr.Fsync.Count, missed,
					"what a write flushes is its own")
				assert.InDelta(t, n, tr.WriteToFsync.Count, missed)
				assert.InDelta(t, n, tr.FadviseToRead.Count, missed)
				assert.LessOrEqual(t, tr.Capture.Losses.Calls, tr.Capture.Losses.Missed)
				assert.LessOrEqual(t, missed, 20.0)
			})
		}
	}
}
