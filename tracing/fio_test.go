package tracing

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// golden compares with testdata/name.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, string(want), got, "%s (go test ./tracing -update rewrites it)", path)
}

// made describes what a made-up device did.
type made struct {
	reads, writes map[int64]uint64 // requests by size
	d2c           time.Duration    // of each
	window        time.Duration
	gaps          []time.Duration
	segments      int64
}

func (l made) trace() *Trace {
	var n counts
	put := func(lane *laneCounts, sizes map[int64]uint64) {
		for bytes, k := range sizes {
			i := bucketOf(uint64(bytes)/sizeUnit, buckets)
			lane.size[i] += k
			lane.sizeBytes[i] += k * uint64(bytes)
			lane.requests += k
			lane.issued += k
			lane.bytes += k * uint64(bytes)
			lane.d2c[bucketOf(uint64(l.d2c)/timeUnit, buckets)] += k
			lane.d2cNS += k * uint64(l.d2c)
			lane.lba[3] += k - k/10
			lane.lba[12] += k / 10
		}
	}
	put(&n.lanes[dirRead], l.reads)
	put(&n.lanes[dirWrite], l.writes)
	for _, g := range l.gaps {
		n.rest.gaps++
		n.rest.gapNS += uint64(g)
		n.rest.gap[bucketOf(uint64(g)/timeUnit, buckets)]++
	}
	start := time.Unix(1, 0)
	w := &window{opened: true, shut: true, start: start, end: start.Add(l.window)}
	w.before.now, w.before.first = 1, 1
	w.after = edge{now: 1 + uint64(l.window), first: 1, idle: 1 + uint64(l.window)}
	c := &Collector{device: Device{Name: "nvme0n1"}, probes: &fakeProbes{}, watching: "this process"}
	t := c.build(w, &n)
	t.Capture.MaxSegments = l.segments
	return t
}

var kvInput = FioInput{
	Title: "MaxStorageStress, trial 1", Model: "llama3.1-8b", Users: 200, BytesPerToken: 131072,
	ReadBytes: 9 << 30, WriteBytes: 4 << 30,
}

func repeat(n int, d time.Duration) (all []time.Duration) {
	for range n {
		all = append(all, d)
	}
	return all
}

func TestFioJobs(t *testing.T) {
	cached := kvInput
	cached.ReadBytes = 100 << 30
	huge := kvInput
	huge.HugePages = true
	for _, c := range []struct {
		name string
		load made
		in   FioInput
	}{
		{"deep", made{
			reads: map[int64]uint64{1 << 20: 9000, 512 << 10: 1000, 4096: 30}, writes: map[int64]uint64{1 << 20: 4000, 64 << 10: 2000, 516 << 10: 1},
			d2c: 10 * time.Millisecond, window: 20 * time.Second,
		}, kvInput},
		{"hugepages", made{segments: 127, reads: map[int64]uint64{1 << 20: 1000, 4096: 9000}, writes: map[int64]uint64{1 << 20: 1000}, d2c: 10 * time.Millisecond, window: 20 * time.Second}, huge},
		{"pauses", made{
			reads: map[int64]uint64{128 << 10: 8000}, d2c: 8 * time.Millisecond, window: 20 * time.Second,
			gaps: append(repeat(100, 100*time.Millisecond), repeat(5000, 3*time.Microsecond)...),
		}, FioInput{}},
		{"batches", made{
			reads: map[int64]uint64{4096: 200000}, d2c: 700 * time.Microsecond, window: 14 * time.Second,
			gaps: repeat(5000, 500*time.Microsecond),
		}, FioInput{Title: "fio, whose queue runs dry between batches"}},
		{"single", made{
			reads: map[int64]uint64{4096: 70000}, d2c: 100 * time.Microsecond, window: 14 * time.Second,
			gaps: repeat(70000, 100*time.Microsecond),
		}, FioInput{Title: "one request at a time, and work between them"}},
		{"rhythm", made{
			reads: map[int64]uint64{8192: 20000}, d2c: 100 * time.Microsecond, window: 14 * time.Second,
			gaps: append(repeat(15000, 25*time.Microsecond), repeat(5000, 2*time.Millisecond)...),
		}, FioInput{Title: "four requests and a pause of 2 ms"}},
		{"contiguous", made{segments: 254, reads: map[int64]uint64{1 << 20: 9000}, d2c: 10 * time.Millisecond, window: 20 * time.Second}, FioInput{Title: "vllm"}},
		{"cached", made{reads: map[int64]uint64{128 << 10: 8000}, d2c: time.Millisecond, window: 20 * time.Second}, cached},
		{"one-gap", made{reads: map[int64]uint64{4096: 8000}, d2c: time.Millisecond, window: 20 * time.Second, gaps: repeat(1, 10*time.Second)}, FioInput{Title: "vllm"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			job, err := FioJob(c.load.trace(), c.in)
			require.NoError(t, err)
			golden(t, "fio/"+c.name+".fio", job)
			again, err := FioJob(c.load.trace(), c.in)
			require.NoError(t, err)
			assert.Equal(t, job, again, "the same input gives the same text")
			assert.NotContains(t, "\n"+job, "\nsize=")
		})
	}
}

func TestFioJobWithoutBlockRequests(t *testing.T) {
	none := &Trace{Capture: Capture{Status: StatusNone, Reason: "nfs4 is a network filesystem", WindowNS: int64(20 * time.Second)}}
	_, err := FioJob(none, FioInput{})
	require.ErrorContains(t, err, "nfs4 is a network filesystem")

	job, err := FioJob(none, FioInput{ReadSize: 1 << 20, WriteSize: 512 << 10, ReadBytes: 3 << 30, WriteBytes: 1 << 30, Concurrency: 12.4})
	require.NoError(t, err)
	assert.Contains(t, job, "bssplit=1m/100,512k/100\n")
	assert.Contains(t, job, "rwmixread=60\n", "3 GiB in 1 MiB and 1 GiB in 512 KiB are 3072 reads and 2048 writes")
	assert.Contains(t, job, "iodepth=12\n")

	golden(t, "fio/nfs.fio", job)

	// What a block trace of such a run shows is the program's own pages, and what else there was.
	beside := made{reads: map[int64]uint64{4096: 3}, d2c: time.Millisecond, window: 20 * time.Second}.trace()
	job, err = FioJob(beside, FioInput{ReadSize: 1 << 20, WriteSize: 512 << 10, ReadBytes: 3 << 30, WriteBytes: 1 << 30, Concurrency: 12.4})
	require.NoError(t, err)
	assert.Contains(t, job, "bssplit=1m/100,512k/100\n")
	assert.NotContains(t, job, "WARNING", "no cache served what a server did")

	calls := &Trace{Histograms: made{reads: map[int64]uint64{65536: 75}, writes: map[int64]uint64{4096: 25}, d2c: time.Millisecond, window: time.Second}.trace().Histograms}
	calls.VFSReadSize, calls.VFSWriteSize, calls.SizeRead, calls.SizeWrite = calls.SizeRead, calls.SizeWrite, nil, nil
	job, err = FioJob(calls, FioInput{Concurrency: 1000})
	require.NoError(t, err)
	assert.Contains(t, job, "bssplit=64k/100,4k/100\n")
	assert.Contains(t, job, "rwmixread=75\n")
	assert.Contains(t, job, "iodepth=256\n")
	assert.Contains(t, job, "distilled from system calls")
}

func TestSplitSumsTo100(t *testing.T) {
	for _, sizes := range []map[int64]uint64{
		{4096: 1, 8192: 1, 16384: 1},
		{4096: 1e6, 8192: 1},
		{4096: 335, 8192: 335, 16384: 330},
	} {
		h := made{reads: sizes, window: time.Second}.trace().SizeRead
		total := 0
		for _, s := range split(h) {
			assert.Positive(t, s.percent)
			total += s.percent
		}
		assert.Equal(t, 100, total)
	}
	many := map[int64]uint64{}
	for i := range int64(300) {
		many[4096*(i+1)] = uint64(10 + i%7)
	}
	shares := split(made{reads: many, window: time.Second}.trace().SizeRead)
	assert.LessOrEqual(t, len(shares), maxSplit)
	total := 0
	for _, s := range shares {
		total += s.percent
	}
	assert.Equal(t, 100, total)
}

func TestText(t *testing.T) {
	var b strings.Builder
	tr := made{
		reads: map[int64]uint64{1 << 20: 9000, 4096: 1000}, writes: map[int64]uint64{1 << 20: 400},
		d2c: 10 * time.Millisecond, window: 20 * time.Second,
	}.trace()
	require.NoError(t, tr.WriteText(&b, kvInput))
	golden(t, "text/traced.txt", b.String())
	b.Reset()
	require.NoError(t, (&Trace{Capture: Capture{
		Status: StatusCounters, Reason: "this process lacks the privilege (CAP_BPF)", Needs: []string{"CAP_BPF: run with sudo"}, Device: "sda",
		WindowNS: 1e9, Stat: &DeviceStat{ReadIOs: 7, ReadBytes: 1 << 30, IOTicks: 5e8},
	}}).WriteText(&b, FioInput{}))
	golden(t, "text/counters.txt", b.String())
}

func TestDiagnosis(t *testing.T) {
	base := made{reads: map[int64]uint64{1 << 20: 1000}, d2c: 10 * time.Millisecond, window: time.Second}
	assert.Contains(t, base.trace().Diagnosis(FioInput{}), "device-bound: 10.0 requests were in flight on average, and something was for 100% of the window, each 10 ms at the device")
	assert.Contains(t, base.trace().Diagnosis(FioInput{ReadBytes: 10 << 30}), "cache-served: the device read 10%")
	calls := base.trace()
	calls.VFSReadSize = made{reads: map[int64]uint64{1 << 20: 4000}, d2c: time.Millisecond, window: time.Second}.trace().SizeRead
	assert.Contains(t, calls.Diagnosis(FioInput{}), "cache-served: the device read 25%", "a program that is only watched counts nothing itself")
	idle := base
	idle.gaps = repeat(10, 40*time.Millisecond)
	assert.Contains(t, idle.trace().Diagnosis(FioInput{}), "host-bound: the device had nothing to do for 40%")
	unknown := base
	unknown.d2c = 500 * time.Microsecond
	blind := unknown.trace()
	blind.Capture.IdleKnown = false
	assert.Contains(t, blind.Diagnosis(FioInput{}), "host-bound: the device had nothing to do for at least 50% of the window")
	blind = base.trace()
	blind.Capture.IdleKnown = false
	assert.Equal(t, "device-bound: 10.0 requests were in flight on average, each 10 ms at the device", blind.Diagnosis(FioInput{}))
	others := base.trace()
	others.Capture.Read.ForeignBytes = others.Capture.Read.Bytes / 2
	assert.Contains(t, others.Diagnosis(FioInput{ReadBytes: others.Capture.Read.Bytes}), "cache-served: the device read 50%", "what others read serves nobody here")
	others.Capture.Members = []string{"sda", "sdb"}
	assert.Contains(t, others.Diagnosis(FioInput{ReadBytes: others.Capture.Read.Bytes}), "device-bound", "the kernel queues for its members")
	queued := base.trace()
	queued.Capture.Read.Q2DNS = 3 * queued.Capture.Read.D2CNS
	assert.Contains(t, queued.Diagnosis(FioInput{}), "scheduler-bound: requests waited 30 ms")
	assert.Contains(t, base.trace().Diagnosis(FioInput{ReadSize: 1 << 20, ReadBytes: 10 << 30}), "unknown: the storage is no block device of this host")
	bucket := base.trace()
	bucket.Capture.Device = ""
	assert.Contains(t, bucket.Diagnosis(FioInput{ReadBytes: 10 << 30}), "unknown: the storage is no block device")
	none := made{window: time.Second}.trace()
	assert.Contains(t, none.Diagnosis(FioInput{}), "idle")
	assert.Contains(t, none.Diagnosis(FioInput{ReadBytes: 1}), "cache-served: no request")
}

func TestHotZone(t *testing.T) {
	at := func(counts ...int64) *Histogram {
		h := &Histogram{Unit: "gb"}
		for i, n := range counts {
			if n > 0 {
				h.Count += n
				h.Buckets = append(h.Buckets, Bucket{Range: [2]float64{float64(10 * i), float64(10*i + 10)}, Count: n})
			}
		}
		return h.finish()
	}
	for _, c := range []struct {
		name string
		h    *Histogram
		want string
	}{
		{"nothing", nil, ""},
		{"one place", at(0, 0, 7), "20–30 GiB (100% of requests)"},
		{"neighbours are one", at(1, 45, 45, 9), "10–30 GiB (90% of requests)"},
		{"two places", at(2, 48, 2, 0, 0, 46, 2), "10–20 GiB (48%), 50–60 GiB (46% of requests)"},
		{"everywhere", at(10, 0, 10, 0, 10, 0, 10, 0, 10), "0–70 GiB (80% of requests)"},
	} {
		assert.Equal(t, c.want, hotZone(c.h), c.name)
	}
}

func TestRowsSayRealSizes(t *testing.T) {
	var b strings.Builder
	w := &textWriter{w: &b}
	h := newSizes(make([]uint64, buckets), make([]uint64, buckets))
	assert.Nil(t, h)
	mixed := made{reads: map[int64]uint64{4096: 900, 1 << 20: 90, 516 << 10: 5, 640 << 10: 5}, window: time.Second}.trace().SizeRead
	w.histogram(Named{Name: "sizes", Label: "of requests", Histogram: mixed})
	require.NoError(t, w.err)
	assert.Contains(t, b.String(), "       4 KiB                     900  90.0% "+strings.Repeat("█", barWidth)+"\n")
	assert.Contains(t, b.String(), "     512 KiB … 1 MiB              10   1.0% ▌\n")
	assert.Contains(t, b.String(), "       1 MiB                      90   9.0% ████\n")
}

func TestRowsOfDepthsAreWholeNumbers(t *testing.T) {
	var b strings.Builder
	h := newHistogram("requests", []uint64{0, 3, 1, 1, 0, 2, 0, 1}, 1, 1, 30)
	w := &textWriter{w: &b}
	w.histogram(Named{Name: "qd_read", Label: "reads", Histogram: h})
	require.NoError(t, w.err)
	assert.Contains(t, b.String(), "           1                       3  37.5% ")
	assert.Contains(t, b.String(), "           2 … 3                   2  25.0% ")
	assert.Contains(t, b.String(), "           4 … 7                   3  37.5% ")
}

func TestBar(t *testing.T) {
	assert.Equal(t, strings.Repeat("█", barWidth), bar(7, 7))
	assert.Equal(t, strings.Repeat("█", barWidth/2), bar(1, 2))
	assert.Equal(t, "▏", bar(1, 1e9), "what is there is seen")
	assert.Empty(t, bar(0, 7))
	assert.Equal(t, "█▏", bar(9, 8*barWidth))
}
