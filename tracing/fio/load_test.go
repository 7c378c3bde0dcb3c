package fio

import (
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/tracing"
)

// loadTrace returns ten seconds of reads and writes of 64 KiB at the given depths.
func loadTrace(reads, writes, readDepth, writeDepth float64) *tracing.Trace {
	const window = 10 * time.Second
	side := func(n, depth float64) (tracing.Direction, tracing.Histogram) {
		if n == 0 {
			return tracing.Direction{}, tracing.Histogram{}
		}
		return tracing.Direction{Requests: int64(n), Bytes: int64(n) << 16,
			D2CNS: int64(depth * float64(window))}, sizes(map[int64]int64{65536: int64(n)})
	}
	t := &tracing.Trace{Capture: tracing.Capture{Status: tracing.StatusTraced, Device: "nvme0n1",
		WindowNS: int64(window), IdleKnown: true}}
	t.Capture.Read, t.SizeRead = side(reads, readDepth)
	t.Capture.Write, t.SizeWrite = side(writes, writeDepth)
	return t
}

func jobText(t *testing.T, tr *tracing.Trace) string {
	t.Helper()
	text, err := Job(tr, Input{})
	require.NoError(t, err)
	return text
}

func TestEachDirectionHasItsDepth(t *testing.T) {
	job := jobText(t, loadTrace(7000, 3000, 12, 3))
	assert.Contains(t, job, "\n[reads]\nrw=randread\nbssplit=64k/100\niodepth=12\n")
	assert.Contains(t, job, "\n[writes]\nrw=randwrite\nbssplit=64k/100\niodepth=3\n")
	assert.Contains(t, job, "\nexitall\n")
	assert.NotContains(t, job, "rwmixread")
	assert.Contains(t, job, "\n#rate_iops=700\n")

	job = jobText(t, loadTrace(7000, 3000, 0.6, 0.3))
	assert.Contains(t, job, "\n[kv-cache]\nrw=randrw\nrwmixread=70\n", "one at a time")
	assert.Contains(t, job, "\n#rate_iops=700,300\n")

	// A write is in flight for a quarter of the time: 1 ms each, and 3 ms between them.
	job = jobText(t, loadTrace(7000, 2500, 12, 0.25))
	assert.Contains(t, job, "\niodepth=1\niodepth_batch_submit=1\niodepth_batch_complete_min=1\n"+
		"thinktime=3000\nthinktime_blocks=1\n")
}

func TestOneDirectionOpensNothingForTheOther(t *testing.T) {
	assert.Contains(t, jobText(t, loadTrace(7000, 0, 12, 0)), "\n[reads]\nrw=randread\n")
	assert.Contains(t, jobText(t, loadTrace(0, 3000, 0, 12)), "\n[writes]\nrw=randwrite\n")
	// dd reads its own binary before it writes.
	job := jobText(t, loadTrace(3, 8000, 0.001, 12))
	assert.NotContains(t, job, "[reads]")
	assert.Contains(t, job, "# WARNING: 3 reads next to 8000 writes are left out\n")
}

func TestSequentialLoadsStaySo(t *testing.T) {
	tr := loadTrace(0, 8000, 0, 4)
	tr.Capture.Write.Sequential = 7900
	job := jobText(t, tr)
	assert.Contains(t, job, "\nrw=write\n")
	assert.Contains(t, job, "\niodepth=4\niodepth_batch_submit=1\n", "the kernel would merge them")
	tr.Capture.Write.Sequential = 4000
	job = jobText(t, tr)
	assert.Contains(t, job, "\nrw=randwrite\n")
	assert.Contains(t, job, "\npercentage_random=50\n")
}

func TestFlushesAreInTheJob(t *testing.T) {
	tr := loadTrace(0, 8000, 0, 4)
	p := &tr.Capture
	p.FlushWaits, p.OwnFlushWaits, p.KernelFlushWaits = 100, 50, 20
	assert.Contains(t, jobText(t, tr), "\nfdatasync=80\n", "everybody's on the device")
	p.Filter = tracing.FilterProcess
	assert.Contains(t, jobText(t, tr), "\nfdatasync=160\n", "those of the watched")
	p.FlushWaits, p.OwnFlushWaits = 20, 0
	assert.Contains(t, jobText(t, tr), "\nfdatasync=400\n", "a journal's, for them")
	p.FlushWaits = 100
	assert.NotContains(t, jobText(t, tr), "fdatasync", "other processes'")
	p.FlushWaits, p.KernelFlushWaits, p.Flushes = 0, 0, 10
	assert.Contains(t, jobText(t, tr), "\nfdatasync=800\n", "of requests with data and a flush")
	p.Flushes = 2
	assert.NotContains(t, jobText(t, tr), "fdatasync", "twice is no rhythm")
}

func TestSizesKeepTheirBytes(t *testing.T) {
	few := func(counts map[int64]int64) sizeShares { return split(sizes(counts), 4096, false) }
	// 0.4 % of the requests are half of the bytes.
	s := few(map[int64]int64{4096: 99600, 1 << 20: 400})
	require.Len(t, s.shares, 2)
	assert.Equal(t, 99, s.shares[0].percent)
	assert.InEpsilon(t, 4096*.996+float64(1<<20)*.004, mean(s.shares), 0.02)
	assert.Contains(t, s.note, "1 sizes with few requests and 51% of the bytes are 1%")
	// Few enough bytes to keep its size.
	s = few(map[int64]int64{65536: 99600, 1 << 20: 400})
	assert.Equal(t, []share{{65536, 99}, {1 << 20, 1}}, s.shares)
	assert.Empty(t, s.note)
	// Metadata has neither many requests nor many bytes.
	assert.Equal(t, []share{{1 << 20, 100}},
		few(map[int64]int64{4096: 5, 1 << 20: 995}).shares)
	// fio fills the end of a file with the smallest size.
	assert.Equal(t, []share{{1 << 20, 100}},
		split(sizes(map[int64]int64{4096: 40, 1 << 20: 960}), 4096, true).shares)
}

func TestPagesOfOtherMachines(t *testing.T) {
	tr := loadTrace(8000, 0, 4, 0)
	tr.SizeRead = sizes(map[int64]int64{4 << 20: 8000})
	tr.Capture.MaxSegments = 127
	job := jobText(t, tr)
	assert.Contains(t, job, "a device takes 127 segments", "of 4 KiB")
	description := regexp.MustCompile(`(?m)^description=(.*)$`).FindStringSubmatch(job)[1]
	assert.Less(t, len(description), 128, "what fio keeps of it")
	assert.NotContains(t, description, ";", "fio reads a comment from there")
	tr.Capture.PageBytes = 64 << 10
	assert.NotContains(t, jobText(t, tr), "segments", "of 64 KiB on arm64")
}
