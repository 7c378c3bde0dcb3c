//go:build linux && (amd64 || arm64)

package tracing

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/internal/privtest"
)

type diskCase struct {
	name  string
	sizes map[int64]float64 // percent of reads, nil: requests are split in ways that fio does not know
	depth float64           // that fio holds, 0: the device does not let it
	bytes float64           // tolerance
	times float64           // tolerance
	args  []string
}

// TestAgainstFioOnADisk compares what TestAgainstFio does on the disk below the temporary directory, which other programs
// use as well, and whose completions are interrupts, of which a virtual machine's programs may miss some.
func TestAgainstFioOnADisk(t *testing.T) {
	privtest.Root(t)
	needFio(t)
	dir := t.TempDir()
	d, err := BackingDevice(dir)
	require.NoError(t, err)
	if d.Name == "" {
		privtest.Need(t, errors.New("the temporary directory has no block device: "+d.Reason))
	}
	file := filepath.Join(dir, "file")
	runFio(t, file, "--rw=write", "--bs=1M", "--size=256M", "--end_fsync=1")
	huge := reserveHugePages(t, 32)
	for _, c := range []diskCase{
		{"random 4 KiB reads", map[int64]float64{4 << 10: 100}, 0, diskBytes, diskTimes, []string{"--rw=randread", "--bs=4k", "--iodepth=32", "--io_size=160M"}},
		{"1 MiB reads", nil, 4, diskBytes, diskTimes, []string{"--rw=randread", "--bs=1M", "--iodepth=4", "--io_size=4G", "--iomem=mmaphuge"}},
		{"a mix of sizes", map[int64]float64{4 << 10: 50, 16 << 10: 30, 128 << 10: 20}, 0, diskBytes, diskTimes, []string{"--rw=randread", "--norandommap", "--bssplit=4k/50:16k/30:128k/20", "--iodepth=8", "--io_size=512M"}},
		// The filesystem's own writes belong to fio. Requests are alone and short: some of the 60 µs pass between the
		// completion and the kernel's own counting.
		{"writes with fsync", nil, 0, 5 * diskBytes, 2 * diskTimes, []string{"--rw=randwrite", "--bs=16k", "--fsync=8", "--io_size=50M"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.depth > 0 {
				privtest.Need(t, huge)
			}
			var wrong []string
			alone := c.sizes == nil && c.depth == 0 // nothing is compared with fio itself, or nobody was in the way
			disturbed := false
			for range 5 {
				var read, write fioSide
				tr := traced(t, Options{Device: d, Comm: "fio"}, func() {
					read, write = runFio(t, file, append([]string{"--ioengine=libaio", "--size=256M"}, c.args...)...)
				})
				wrong = c.compare(t, tr, read, write)
				foreign := tr.Capture.Read.ForeignRequests + tr.Capture.Write.ForeignRequests
				disturbed = float64(foreign) > 0.2*float64(tr.Capture.Requests())
				if p := tr.Capture; float64(p.Read.ForeignRequests) <= others*float64(p.Requests()) && read.depth() >= fioHolds*c.depth {
					alone = true
					wrong = append(wrong, c.compareFio(t, tr)...)
				}
				if alone && len(wrong) == 0 {
					return
				}
				t.Log(strings.Join(wrong, "; "))
			}
			if len(wrong) > 0 && disturbed {
				t.Skipf("other programs used the disk in five runs: %s", strings.Join(wrong, "; "))
			}
			assert.Empty(t, wrong)
			if !alone {
				t.Skip("sizes and depth are not compared: in five runs other programs used the disk, or kept fio from holding its iodepth")
			}
		})
	}
}

// The shares by which the trace may differ: bytes and requests by what was lost and by fio's own start, times as on an
// idle device, depth by what fio needs between two requests.
const (
	diskBytes    = 0.01
	diskRequests = 0.005
	diskTimes    = 0.05
	diskDepth    = 0.10
)

func (c diskCase) compare(t *testing.T, tr *Trace, read, write fioSide) (wrong []string) {
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
	if after := float64(p.Read.InFlightAfter + p.Write.InFlightAfter); requests < ios { // where others keep the disk busy, these may be lost ones
		requests = min(ios, requests+after)
	}
	near("the device's requests", requests, ios, diskRequests)
	waits := tr.FlushWait.Total() * 1000
	seen := float64(p.Requests() + p.FlushWaits)
	ticks := float64(p.Stat.ReadTicks + p.Stat.WriteTicks)
	q2d := float64(p.Read.Q2DNS+p.Write.Q2DNS) + waits
	near("mean Q2D + D2C in ns", (p.Read.D2C()+p.Write.D2C()+q2d)/seen, ticks/ios, c.times)
	near("time-weighted depth", p.Read.MeanDepth+p.Write.MeanDepth, (ticks-q2d*ios/seen)/float64(p.WindowNS), c.times)
	return wrong
}

// What makes sizes and depth comparable: hardly a request was somebody else's, and fio had its iodepth in flight by its own
// reckoning.
const (
	others   = 0.01
	fioHolds = 0.97
)

func (c diskCase) compareFio(t *testing.T, tr *Trace) (wrong []string) {
	p := tr.Capture
	if c.depth > 0 {
		depth := p.Read.MeanDepth * float64(p.WindowNS) / float64(p.WindowNS-p.LeadNS-p.TailNS)
		t.Logf("depth %.3g, fio's iodepth %g", depth, c.depth)
		if math.Abs(depth/c.depth-1) > diskDepth {
			wrong = append(wrong, fmt.Sprintf("the depth was %g instead of fio's %g", depth, c.depth))
		}
	}
	for bytes, want := range c.sizes {
		if got := sharePercent(tr.SizeRead, bytes); math.Abs(got-want) > 1 {
			wrong = append(wrong, fmt.Sprintf("%.1f%% of the requests had %d bytes instead of %g%%", got, bytes, want))
		}
	}
	return wrong
}

// reserveHugePages sees to it that so many huge pages are reserved until the test ends.
func reserveHugePages(t *testing.T, pages int) error {
	const file = "/proc/sys/vm/nr_hugepages"
	before, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	t.Cleanup(func() { _ = os.WriteFile(file, before, 0o644) })
	return os.WriteFile(file, []byte(fmt.Sprint(pages)), 0o644)
}
