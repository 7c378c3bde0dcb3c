//go:build linux && (amd64 || arm64)

package collector

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/tiers/privtest"
	"kvbench/tracing"
	"kvbench/tracing/host"
)

type diskCase struct {
	name  string
	bytes float64 // tolerance
	times float64 // tolerance
	args  []string
}

// TestAgainstFioOnADisk compares a trace with the disk's own counters, on the disk below the
// temporary directory: other programs use it as well, and its completions are interrupts, of which
// a virtual machine's programs may miss some. Sizes and depth are TestAgainstFio's: here others are
// in the way, and fio reckons a request to be in flight until it looks.
func TestAgainstFioOnADisk(t *testing.T) {
	privtest.Root(t)
	needFio(t)
	dir := t.TempDir()
	d, err := host.BackingDevice(dir)
	require.NoError(t, err)
	if d.Name == "" {
		privtest.Need(t, errors.New("the temporary directory has no block device: "+d.Reason))
	}
	file := filepath.Join(dir, "file")
	runFio(t, file, "--rw=write", "--bs=1M", "--size=256M", "--end_fsync=1")
	for _, c := range []diskCase{
		{"random 4 KiB reads", diskBytes, diskTimes,
			[]string{"--rw=randread", "--bs=4k", "--iodepth=32", "--io_size=160M"}},
		{"1 MiB reads", diskBytes, diskTimes,
			[]string{"--rw=randread", "--bs=1M", "--iodepth=4", "--io_size=1G"}},
		{"a mix of sizes", diskBytes, diskTimes,
			[]string{"--rw=randread", "--norandommap", "--bssplit=4k/50:16k/30:128k/20",
				"--iodepth=8", "--io_size=512M"}},
		// The filesystem's own writes belong to fio. Requests are alone and short: some of the 60
		// µs pass between the completion and the kernel's own counting.
		{"writes with fsync", 5 * diskBytes, 2 * diskTimes,
			[]string{"--rw=randwrite", "--bs=16k", "--fsync=8", "--io_size=50M"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var wrong []string
			disturbed := false
			for range 5 {
				var read, write fioSide
				tr := traced(t, Options{Device: d, Comm: "fio"}, func() {
					read, write = runFio(t, file,
						append([]string{"--ioengine=libaio", "--size=256M"}, c.args...)...)
				})
				if wrong = c.compare(t, tr, read, write); len(wrong) == 0 {
					return
				}
				t.Log(strings.Join(wrong, "; "))
				foreign := tr.Capture.Read.ForeignRequests + tr.Capture.Write.ForeignRequests
				disturbed = disturbed || float64(foreign) > 0.2*float64(tr.Capture.Requests())
			}
			if disturbed {
				t.Skipf("other programs used the disk in five runs: %s", strings.Join(wrong, "; "))
			}
			assert.Empty(t, wrong)
		})
	}
}

// The shares by which the trace may differ: bytes and requests by what was lost and by fio's own
// start, times as on an idle device.
const (
	diskBytes    = 0.01
	diskRequests = 0.005
	diskTimes    = 0.05
)

func (c diskCase) compare(t *testing.T, tr *tracing.Trace, read, write fioSide) (wrong []string) {
	p := tr.Capture
	near := func(what string, got, want, tolerance float64) {
		t.Logf("%s %.6g, expected %.6g", what, got, want)
		if math.Abs(got-want) > tolerance*want {
			wrong = append(wrong, fmt.Sprintf("%s is %g instead of %g", what, got, want))
		}
	}
	stale := p.Read.Stale + p.Write.Stale
	scale := float64(p.Requests()+stale) / float64(p.Requests()) // what was lost has no bytes
	own := p.Read.Bytes - p.Read.ForeignBytes + p.Write.Bytes - p.Write.ForeignBytes
	near("fio's bytes", float64(own)*scale, float64(read.IOBytes+write.IOBytes), c.bytes)
	ios := float64(p.Stat.ReadIOs + p.Stat.WriteIOs)
	requests := float64(p.Requests() + stale + p.FlushWaits)
	// where others keep the disk busy, these may be lost ones
	if after := float64(p.Read.InFlightAfter + p.Write.InFlightAfter); requests < ios {
		requests = min(ios, requests+after)
	}
	near("the device's requests", requests, ios, diskRequests)
	waits := tr.FlushWait.Sum * 1000
	seen := float64(p.Requests() + p.FlushWaits)
	ticks := float64(p.Stat.ReadTicks + p.Stat.WriteTicks)
	if emulated() {
		return wrong
	}
	q2d := float64(p.Read.Q2DNS+p.Write.Q2DNS) + waits
	near("mean Q2D + D2C in ns", (p.Read.D2C()+p.Write.D2C()+q2d)/seen, ticks/ios, c.times)
	near("time-weighted depth", p.Read.MeanDepth+p.Write.MeanDepth,
		(ticks-q2d*ios/seen)/float64(p.WindowNS), c.times)
	return wrong
}
