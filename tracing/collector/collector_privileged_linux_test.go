//go:build linux && (amd64 || arm64)

package collector

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"kvbench/tiers/privtest"
	"kvbench/tracing"
	"kvbench/tracing/host"
)

// fioResult is the part of fio's JSON that is compared.
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

// emulated says that testdata/kernels.sh runs the test on a processor made of software, where times
// mean nothing.
func emulated() bool { return os.Getenv("KVTEST_EMULATED") == "1" }

// ioSize is how much to read or write, in MiB.
func ioSize(mib int) string {
	if emulated() {
		mib /= 8
	}
	return fmt.Sprintf("%dM", mib)
}

func needFio(t testing.TB) {
	_, err := exec.LookPath("fio")
	privtest.Need(t, err)
}

// rawLoop is an idle loop device without a filesystem, every block of which has been written.
func rawLoop(t testing.TB, mib int) (host.Device, string) {
	t.Helper()
	needFio(t)
	l := privtest.LoopFS(t, mib, privtest.LoopOptions{NoJournal: true, PreferDirectIO: true})
	d, err := host.BackingDevice(l.Dir)
	require.NoError(t, err)
	require.Equal(t, l.Name, d.Name)
	d.Filesystem, d.Mount = "", host.Mount{}
	require.NoError(t, unix.Unmount(l.Dir, 0))
	runFio(t, l.Path, "--rw=write", "--bs=1M", fmt.Sprintf("--size=%dM", mib), "--end_fsync=1")
	return d, l.Path
}

// traced runs work in a window.
func traced(t testing.TB, opt Options, work func()) *tracing.Trace {
	t.Helper()
	c, err := Start(t.Context(), opt)
	require.NoError(t, err)
	defer func() { assert.NoError(t, c.Close()) }()
	if u := c.Unavailable(); u != nil {
		privtest.Need(t, fmt.Errorf("%w: %w", u, u.Err))
	}
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
		sizes map[int64]float64 // percent of reads
		// One request at a time from memory takes less than the scheduler may take before the
		// kernel has counted it.
		shallow bool
		args    []string
	}{
		{"random 4 KiB reads", map[int64]float64{4 << 10: 100}, false,
			[]string{"--rw=randread", "--bs=4k", "--iodepth=32", "--ioengine=libaio", "--size=256M",
				"--io_size=" + ioSize(80)}},
		{"1 MiB reads", nil, false, []string{"--rw=read", "--bs=1M", "--iodepth=4",
			"--ioengine=libaio", "--size=256M", "--io_size=" + ioSize(1024), "--iomem=mmap"}},
		{"a mix of sizes", map[int64]float64{4 << 10: 50, 16 << 10: 30, 128 << 10: 20}, false,
			[]string{"--rw=randrw", "--rwmixread=70", "--norandommap",
				"--bssplit=4k/50:16k/30:128k/20,64k/100", "--iodepth=8", "--ioengine=libaio",
				"--size=256M", "--io_size=" + ioSize(256)}},
		{"writes with fsync", nil, true,
			[]string{"--rw=randwrite", "--bs=16k", "--fsync=8", "--ioengine=psync", "--size=256M",
				"--io_size=12800k"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var tr *tracing.Trace
			// other load on the machine delays the kernel's own counting, which comes after the
			// completion
			for range 3 {
				var read, write fioSide
				tr = traced(t, Options{Device: d},
					func() { read, write = runFio(t, file, c.args...) })
				agree(t, tr, read, write)
				if c.shallow || emulated() || timesAgree(t, tr) {
					break
				}
			}
			assert.True(t, c.shallow || emulated() || timesAgree(t, tr),
				"mean Q2D + D2C and depth are within 5 %% of the device's own")
			// pages that do not lie together split requests in ways that fio does not know
			if c.sizes == nil {
				return
			}
			require.Len(t, tr.SizeRead.Buckets, len(c.sizes))
			near := 3.0 // fio draws the sizes: an eighth of the requests varies thrice as much
			if emulated() {
				near = 8
			}
			for bytes, want := range c.sizes {
				assert.InDelta(t, want, sharePercent(tr.SizeRead, bytes), near,
					"the share of %d bytes", bytes)
			}
		})
	}
}

// sharePercent is the share of a histogram's requests that have exactly so many bytes.
func sharePercent(h tracing.Histogram, bytes int64) float64 {
	n := int64(0)
	for _, b := range h.Buckets {
		if b.Value*1024 == float64(bytes) {
			n += b.Count
		}
	}
	return 100 * float64(n) / float64(h.Count)
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

// timesAgree compares the means with the device's own, which reckon in the requests that only
// waited for a flush, and the lost ones.
func timesAgree(t *testing.T, tr *tracing.Trace) bool {
	t.Helper()
	p := tr.Capture
	wait := tr.FlushWait.Sum * 1000
	seen := float64(p.Requests() + p.FlushWaits)
	ios := float64(p.Stat.ReadIOs + p.Stat.WriteIOs)
	mean := (float64(p.Read.D2CNS+p.Read.Q2DNS+p.Write.D2CNS+p.Write.Q2DNS) + wait) / seen
	stat := float64(p.Stat.ReadTicks+p.Stat.WriteTicks) / ios
	q2d := (float64(p.Read.Q2DNS+p.Write.Q2DNS) + wait) * ios / seen
	statDepth := (float64(p.Stat.ReadTicks+p.Stat.WriteTicks) - q2d) / float64(p.WindowNS)
	depth := p.Read.MeanDepth + p.Write.MeanDepth
	t.Logf("mean %.1f µs (device's own %.1f), depth %.2f (%.2f), stale %d", mean/1000, stat/1000,
		depth, statDepth, p.Read.Stale+p.Write.Stale)
	return math.Abs(mean/stat-1) < 0.05 && math.Abs(depth/statDepth-1) < 0.05
}
