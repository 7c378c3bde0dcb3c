//go:build linux && (amd64 || arm64)

package collector

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/cilium/ebpf/link"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"kvbench/tiers/privtest"
	"kvbench/tracing"
	"kvbench/tracing/host"
)

// fioResult is the compared part of fio's JSON.
type fioResult struct {
	Jobs []struct {
		Read, Write, Sync fioSide
	} `json:"jobs"`
}

type fioSide struct {
	IOBytes  int64 `json:"io_bytes"`
	TotalIOs int64 `json:"total_ios"`
	Syncs    int64 `json:"-"` // of writes
}

func runFio(t testing.TB, file string, args ...string) (read, write fioSide) {
	t.Helper()
	out, err := exec.Command("fio", append([]string{
		"--name=t", "--filename=" + file, "--direct=1", "--output-format=json", "--randrepeat=1",
	}, args...)...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	var r fioResult
	require.NoError(t, json.Unmarshal(out, &r), "%s", out)
	for _, j := range r.Jobs {
		read.IOBytes, read.TotalIOs = read.IOBytes+j.Read.IOBytes, read.TotalIOs+j.Read.TotalIOs
		write.IOBytes, write.TotalIOs = write.IOBytes+j.Write.IOBytes,
			write.TotalIOs+j.Write.TotalIOs
		write.Syncs += j.Sync.TotalIOs
	}
	return read, write
}

// ioSize is how much to read or write, in MiB: less on an emulated processor of testdata/kernels.sh.
func ioSize(mib int) string {
	if os.Getenv("KVTEST_EMULATED") == "1" {
		mib /= 8
	}
	return fmt.Sprintf("%dM", mib)
}

func needFio(t testing.TB) {
	_, err := exec.LookPath("fio")
	privtest.Need(t, err)
}

// rawLoop makes an idle loop device without a filesystem, with every block written.
func rawLoop(t testing.TB, mib int) (host.Device, string) {
	t.Helper()
	needFio(t)
	l := privtest.LoopFS(t, mib, privtest.LoopOptions{NoJournal: true, PreferDirectIO: true})
	d, err := host.BackingDevice(l.Dir)
	require.NoError(t, err)
	require.Equal(t, l.Name, d.Name)
	assert.Equal(t, [2]uint32{l.Major, l.Minor}, [2]uint32{d.Major, d.Minor})
	assert.Equal(t, []string{l.BackingFile, "ext4", l.Dir, l.Path}, []string{d.BackingFile,
		d.Filesystem, d.Mount.Point, d.Mount.Source})
	d.Filesystem, d.Mount = "", host.Mount{}
	require.NoError(t, unix.Unmount(l.Dir, 0))
	runFio(t, l.Path, "--rw=write", "--bs=1M", fmt.Sprintf("--size=%dM", mib), "--end_fsync=1")
	return d, l.Path
}

// traced runs work in a window.
func traced(t testing.TB, opt Options, work func()) *tracing.Trace {
	t.Helper()
	c := startFor(t, opt)
	tr := inWindow(t, c, work)
	assert.NoError(t, c.Close())
	return tr
}

// inWindow runs work in a window of a collector.
func inWindow(t testing.TB, c *Collector, work func()) *tracing.Trace {
	t.Helper()
	require.NoError(t, c.OpenWindow())
	work()
	require.NoError(t, c.CloseWindow())
	tr, err := c.Snapshot()
	require.NoError(t, err)
	return tr
}

// TestAgainstFio runs known numbers of requests on an otherwise idle device and expects fio, the
// device's own counters and the trace to agree.
func TestAgainstFio(t *testing.T) {
	privtest.Root(t)
	d, file := rawLoop(t, 256)
	for _, c := range []struct {
		name  string
		sizes []int64 // of reads, ascending; nil if fragmented memory may split reads
		args  []string
	}{
		{"random 4 KiB reads", []int64{4 << 10}, []string{"--rw=randread", "--bs=4k",
			"--iodepth=32", "--ioengine=libaio", "--size=256M", "--io_size=" + ioSize(80)}},
		{"1 MiB reads", nil, []string{"--rw=read", "--bs=1M", "--iodepth=4", "--ioengine=libaio",
			"--size=256M", "--io_size=" + ioSize(1024), "--iomem=mmap"}},
		{"a mix of sizes", []int64{4 << 10, 16 << 10, 128 << 10}, []string{"--rw=randrw",
			"--rwmixread=70", "--norandommap", "--bssplit=4k/50:16k/30:128k/20,64k/100",
			"--iodepth=8", "--ioengine=libaio", "--size=256M", "--io_size=" + ioSize(256)}},
		{"writes with fsync", nil, []string{"--rw=randwrite", "--bs=16k", "--fsync=8",
			"--ioengine=psync", "--size=256M", "--io_size=12800k"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var read, write fioSide
			tr := traced(t, Options{Device: d},
				func() { read, write = runFio(t, file, c.args...) })
			agree(t, tr, read, write)
			if c.sizes == nil {
				return
			}
			var sizes []int64
			bytes := int64(0)
			for _, b := range tr.SizeRead.Buckets {
				sizes = append(sizes, int64(b.Value*1024))
				bytes += b.Count * int64(b.Value*1024)
			}
			assert.Equal(t, c.sizes, sizes)
			assert.Equal(t, tr.Capture.Read.Bytes, bytes)
		})
	}
}

// TestTimesAddUp reads one block after the other, with pauses, from a device that takes 2 ms for each.
// At every moment either a request is in flight or the device is idle. So device time and idle time
// add up to the window, to the nanosecond. A lost completion hides idle time: TestAgainstFio and
// TestRequestsOfADisk account for those, and this test takes a window without one.
func TestTimesAddUp(t *testing.T) {
	privtest.Root(t)
	needFio(t)
	const n, service, pause = 100, 2 * time.Millisecond, time.Millisecond
	l := privtest.LoopFS(t, 32, privtest.LoopOptions{NoJournal: true,
		Times: privtest.Times{Read: service}})
	d, err := host.BackingDevice(l.Dir)
	require.NoError(t, err)
	require.NoError(t, unix.Unmount(l.Dir, 0))
	c := startFor(t, Options{Device: d})
	var tr *tracing.Trace
	for try := 1; tr == nil || tr.Capture.Read.Stale > 0; try++ {
		require.LessOrEqual(t, try, 10, "each window lost a completion")
		var read fioSide
		tr = inWindow(t, c, func() {
			read, _ = runFio(t, l.Path, "--rw=randread", "--bs=4k", "--size=16M",
				"--ioengine=psync", fmt.Sprintf("--io_size=%dk", 4*n),
				fmt.Sprintf("--thinktime=%d", pause.Microseconds()))
		})
		agree(t, tr, read, fioSide{})
	}
	p := tr.Capture
	require.EqualValues(t, n, p.Read.Requests)
	assert.EqualValues(t, n-1, p.Gaps)
	assert.GreaterOrEqual(t, p.IdleNS, int64((n-1)*pause))
	assert.GreaterOrEqual(t, p.Read.D2CNS, int64(n*service))
	assert.EqualValues(t, c.window.after.now-c.window.before.now, p.IdleNS+p.Read.D2CNS)
	assert.GreaterOrEqual(t, *tr.D2CRead.P50, float64(service.Microseconds()))
	assert.GreaterOrEqual(t, *tr.Idle.P50, float64(pause.Microseconds()))
	assert.EqualValues(t, n, tr.DepthRead.Sum, "each request alone")
}

// TestDepthAfterLostCompletions reads with one request in flight, and has no program for completions at
// first. It expects the other programs to find these requests, so that the depth of the later ones is 1.
func TestDepthAfterLostCompletions(t *testing.T) {
	privtest.Root(t)
	d, file := rawLoop(t, 64)
	c := startFor(t, Options{Device: d})
	k := c.programs.(*kernelPrograms)
	read := func() { runFio(t, file, "--rw=randread", "--bs=4k", "--size=64M", "--io_size=4M") }
	tr := inWindow(t, c, func() {
		require.NoError(t, k.links[0].Close(), "completions are the first to be attached")
		read()
		complete, err := link.AttachTracing(link.TracingOptions{Program: k.coll.Programs["kv_complete"]})
		require.NoError(t, err)
		k.links[0] = complete
		read()
	})
	assert.Zero(t, tr.Capture.Read.Imbalance())
	n, err := k.window()
	require.NoError(t, err)
	reads := n.directions[dirRead]
	assert.EqualValues(t, []int64{1024, 1024, 1024}, []int64{reads.Requests, reads.Stale, reads.DepthSum})
	assert.Less(t, reads.Miscounted, int64(10*1024), "31 for each, if only a reused address showed them")
	assert.NoError(t, c.Close())
}

// TestRequestsOfADisk counts the reads of one program on the disk of the temporary directory, which
// other programs use too. The disk's completions are interrupts. In a virtual machine the programs may
// miss some of them, and those requests count as lost.
func TestRequestsOfADisk(t *testing.T) {
	privtest.Root(t)
	fio := copied(t, "fio", "kv-fio")
	dir := t.TempDir()
	d, err := host.BackingDevice(dir)
	require.NoError(t, err)
	if d.Name == "" {
		privtest.Need(t, errors.New("the temporary directory has no block device: "+d.Reason))
	}
	file := filepath.Join(dir, "file")
	runFio(t, file, "--rw=write", "--bs=1M", "--size=64M", "--end_fsync=1")
	const n = 5000
	tr := traced(t, Options{Device: d, Filter: tracing.FilterProcess, Comm: "kv-fio"}, func() {
		command(t, fio, "--name=t", "--filename="+file, "--direct=1", "--rw=randread", "--bs=4k",
			"--size=64M", "--ioengine=libaio", "--iodepth=8", "--output=/dev/null",
			fmt.Sprintf("--io_size=%dk", 4*n))
	})
	r := tr.Capture.Read
	seen := int64(0)
	for _, b := range tr.SizeRead.Buckets {
		if b.Value == 4 {
			seen = b.Count
		}
	}
	t.Logf("%d requests, %d lost, %d of 4 KiB", r.Requests, r.Stale, seen)
	// Reading the program and its libraries may add a few requests of 4 KiB for filesystem blocks.
	assert.GreaterOrEqual(t, seen+r.Stale, int64(n))
	assert.Zero(t, r.Imbalance())
}

func agree(t *testing.T, tr *tracing.Trace, read, write fioSide) {
	t.Helper()
	p := tr.Capture
	require.NotNil(t, p.Stat)
	for _, side := range []struct {
		name       string
		got        tracing.Direction
		want       fioSide
		ios, bytes int64
		extra      int64 // requests without data
		d2c, size  tracing.Histogram
	}{
		{"read", p.Read, read, p.Stat.ReadIOs, p.Stat.ReadBytes, 0, tr.D2CRead, tr.SizeRead},
		{"write", p.Write, write, p.Stat.WriteIOs, p.Stat.WriteBytes, p.FlushWaits, tr.D2CWrite,
			tr.SizeWrite},
	} {
		d := side.got
		assert.Equal(t, side.want.IOBytes, side.bytes, "%s: the device moved what fio did",
			side.name)
		if d.Stale == 0 {
			assert.Equal(t, side.want.IOBytes, d.Bytes, "%s bytes", side.name)
		}
		assert.Equal(t, side.ios, d.Requests+d.Stale+side.extra, "%s requests", side.name)
		assert.Equal(t, d.Issued, d.Requeued+d.Requests+d.Stale, "%s: issue = complete + stale",
			side.name)
		assert.EqualValues(t, d.Requests, side.d2c.Count, "%s", side.name)
		assert.EqualValues(t, d.Requests, side.size.Count, "%s", side.name)
		assert.Zero(t, d.InFlightBefore, side.name)
		assert.Zero(t, d.InFlightAfter, side.name)
	}
	assert.Equal(t, p.Stat.FlushIOs, p.Flushes)
	assert.Equal(t, tracing.Losses{Partial: p.Losses.Partial, Merged: p.Losses.Merged}, p.Losses)
}
