//go:build linux && (amd64 || arm64)

package collector

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"kvbench/tiers/privtest"
	"kvbench/tracing"
	"kvbench/tracing/host"
)

var waysOfCalls = []string{byFexit, byKprobe, byTracepoint}

// startCalls starts a collector with the file layer, or skips the test where the kernel does not
// have that way.
func startCalls(t testing.TB, opt Options) *Collector {
	t.Helper()
	opt.Level = tracing.LevelFile
	c := startFor(t, opt)
	file, why := c.about.FileAttach, c.about.NotBetter
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
	c := startCalls(t, opt)
	require.NoError(t, c.OpenWindow())
	work()
	require.NoError(t, c.CloseWindow())
	tr, err := c.Snapshot()
	require.NoError(t, err)
	return tr
}

// TestChainOfCalls expects the best way that there is, and to be told why none before it.
func TestChainOfCalls(t *testing.T) {
	privtest.Root(t)
	if _, err := thisKernel(); err != nil {
		t.Skip(err)
	}
	c := startFor(t, Options{Level: tracing.LevelFile})
	file, why := c.about.FileAttach, c.about.NotBetter
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

// TestEachCallCountsOnce makes calls of every kind and expects as many, whatever the kernel makes
// of them inside.
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
					must(0)(unix.Pread(fd, buffer, 1<<30)) // behind the end
				})
				// The kernel skips a run where it has put another of the same program aside, and
				// says so; of system calls that happens since Linux 6.13.
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

// TestCallsBesideBlockedOnes reads a file while many threads wait in reads of something else, as
// those of a server do. Kretprobes are too few for that: their losses have to be told.
func TestCallsBesideBlockedOnes(t *testing.T) {
	privtest.Root(t)
	l := privtest.LoopFS(t, 16, privtest.LoopOptions{NoJournal: true, PreferDirectIO: true})
	d, err := host.BackingDevice(l.Dir)
	require.NoError(t, err)
	file := filepath.Join(l.Dir, "file")
	require.NoError(t, os.WriteFile(file, make([]byte, 4096), 0o600))
	const blocked, n = 300, 1000
	for _, way := range waysOfCalls {
		t.Run(way, func(t *testing.T) {
			f, err := os.Open(file)
			require.NoError(t, err)
			defer f.Close()
			c := startCalls(t, Options{Device: d, fileAttach: way})
			var pipe [2]int
			require.NoError(t, unix.Pipe(pipe[:]))
			for range blocked {
				go func() { _, _ = unix.Read(pipe[0], make([]byte, 1)) }()
			}
			t.Cleanup(func() {
				_ = unix.Close(pipe[1])
				time.Sleep(
					100 * time.Millisecond)
				_ = unix.Close(pipe[0])
			})
			time.Sleep(500 * time.Millisecond)
			require.NoError(t, c.OpenWindow())
			runtime.LockOSThread()
			buffer := make([]byte, 4096)
			for range n {
				_, err := unix.Pread(int(f.Fd()), buffer, 0)
				require.NoError(t, err)
			}
			runtime.UnlockOSThread()
			require.NoError(t, c.CloseWindow())
			tr, err := c.Snapshot()
			require.NoError(t, err)
			t.Logf("%d of %d calls seen, %d lost", tr.VFSRead.Count, n, tr.Capture.Losses.Calls)
			if way == byKprobe {
				assert.InDelta(t, n, tr.VFSRead.Count+tr.Capture.Losses.Calls, 1,
					"the last one may still be open")
				return
			}
			assert.EqualValues(t, n, tr.VFSRead.Count)
			assert.Zero(t, tr.Capture.Losses.Calls)
		})
	}
}

// TestCostPerCall tells what each way of seeing calls costs: the watched process, one that reads as
// well, and one that makes other system calls.
func TestCostPerCall(t *testing.T) {
	privtest.Root(t)
	l := privtest.LoopFS(t, 16, privtest.LoopOptions{NoJournal: true, PreferDirectIO: true})
	d, err := host.BackingDevice(l.Dir)
	require.NoError(t, err)
	file := filepath.Join(l.Dir, "file")
	require.NoError(t, os.WriteFile(file, make([]byte, 4096), 0o600))
	f, err := os.Open(file)
	require.NoError(t, err)
	defer f.Close()
	const n = 20000
	buffer := make([]byte, 4096)
	each := func(call func()) time.Duration {
		best := time.Hour
		for range 5 {
			begin := time.Now()
			for range n / 5 {
				call()
			}
			best = min(best, time.Since(begin)/(n/5))
		}
		return best
	}
	read := func() { _, _ = unix.Pread(int(f.Fd()), buffer, 0) }
	other := func() { _ = unix.Getppid() }
	t.Logf("untraced: pread of 4 KiB from the page cache %s, getppid %s", each(read), each(other))
	for _, way := range waysOfCalls {
		for name, opt := range map[string]Options{"watched": {}, "bystander": {Comm: "nobody"}} {
			t.Run(fmt.Sprintf("%s/%s", way, name), func(t *testing.T) {
				opt.Device, opt.fileAttach = d, way
				begin := time.Now()
				c := startCalls(t, opt)
				started := time.Since(begin)
				wallRead, wallOther := each(read), each(other)
				// BPF_STATS_RUN_TIME: slows the programs down itself
				stats, err := ebpf.EnableStats(0)
				privtest.Need(t, err)
				defer stats.Close()
				perRead, perOther := programTime(t, c, n, read), programTime(t, c, n, other)
				t.Logf("pread %s (in programs %s), getppid %s (in programs %s); started in %s",
					wallRead, perRead, wallOther, perOther, started.Round(time.Millisecond))
				begin = time.Now()
				require.NoError(t, c.Close())
				t.Logf("closed in %s", time.Since(begin).Round(time.Millisecond))
			})
		}
	}
}

// programTime is how long the file layer's programs run for each of n calls.
func programTime(t *testing.T, c *Collector, n int, call func()) time.Duration {
	sum := func() (d time.Duration) {
		for _, p := range c.programs.(*kernelPrograms).files.Programs {
			s, err := p.Stats()
			require.NoError(t, err)
			d += s.Runtime
		}
		return d
	}
	before := sum()
	for range n {
		call()
	}
	return (sum() - before) / time.Duration(n)
}
