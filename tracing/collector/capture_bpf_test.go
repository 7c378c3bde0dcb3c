//go:build linux && (amd64 || arm64)

package collector

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"kvbench/tools/golden"
	"kvbench/tracing"
	"kvbench/tracing/bpf"
	"kvbench/tracing/host"
)

// made describes the requests of an invented device.
type made struct {
	reads, writes map[int64]uint64 // requests by size
	d2c           time.Duration    // of each request
	window        time.Duration
	gaps          []time.Duration
	segments      int64
}

func (l made) trace() *tracing.Trace {
	var n counts
	put := func(to *bpf.TraceDirection, sizes map[int64]uint64) {
		for bytes, k := range sizes {
			i := bucketOf(uint64(bytes)/sizeUnit, buckets)
			to.Size[i] += k
			to.SizeBytes[i] += k * uint64(bytes)
			to.Requests += int64(k)
			to.Issued += int64(k)
			to.Bytes += int64(k) * bytes
			to.D2c[bucketOf(uint64(l.d2c)/timeUnit, buckets)] += k
			to.D2cNs += int64(k) * int64(l.d2c)
			to.Lba[3] += k - k/10
			to.Lba[12] += k / 10
		}
	}
	put(&n.directions[dirRead], l.reads)
	put(&n.directions[dirWrite], l.writes)
	for _, g := range l.gaps {
		n.other.Gaps++
		n.other.GapNs += int64(g)
		n.other.Gap[bucketOf(uint64(g)/timeUnit, buckets)]++
	}
	start := time.Unix(1, 0)
	w := &window{opened: true, shut: true, start: start, end: start.Add(l.window)}
	w.before.now, w.before.first = 1, 1
	w.after = edge{now: 1 + uint64(l.window), first: 1, idle: 1 + uint64(l.window)}
	c := &Collector{
		common: tracing.Capture{Level: tracing.LevelBlock, Filter: tracing.FilterDevice,
			Device: "nvme0n1", Watched: "this process", Attach: byTracepoint},
		programs: &fakePrograms{fill: func(t *tracing.Trace) {
			n.fill(t, float64(zoneSectors(nil))*host.SectorSize/(1<<30))
		}},
	}
	t, _ := c.build(w)
	t.Capture.MaxSegments = l.segments
	return t
}

func repeat(n int, d time.Duration) (all []time.Duration) {
	for range n {
		all = append(all, d)
	}
	return all
}

// TestTracesOfMadeUpDevices pins traces of invented devices. Other packages make jobs and texts from
// these traces.
func TestTracesOfMadeUpDevices(t *testing.T) {
	for name, load := range map[string]made{
		"deep": {
			reads:  map[int64]uint64{1 << 20: 9000, 512 << 10: 1000, 4096: 30},
			writes: map[int64]uint64{1 << 20: 4000, 64 << 10: 2000, 516 << 10: 1},
			d2c:    10 * time.Millisecond, window: 20 * time.Second,
		},
		"hugepages": {segments: 127, reads: map[int64]uint64{1 << 20: 1000, 4096: 9000},
			writes: map[int64]uint64{1 << 20: 1000}, d2c: 10 * time.Millisecond,
			window: 20 * time.Second},
		"pauses": {
			reads: map[int64]uint64{128 << 10: 8000}, d2c: 8 * time.Millisecond,
			window: 20 * time.Second,
			gaps:   append(repeat(100, 100*time.Millisecond), repeat(5000, 3*time.Microsecond)...),
		},
		"batches": {
			reads: map[int64]uint64{4096: 200000}, d2c: 700 * time.Microsecond,
			window: 14 * time.Second,
			gaps:   repeat(5000, 500*time.Microsecond),
		},
		"single": {
			reads: map[int64]uint64{4096: 70000}, d2c: 100 * time.Microsecond,
			window: 14 * time.Second,
			gaps:   repeat(70000, 100*time.Microsecond),
		},
		"rhythm": {
			reads: map[int64]uint64{8192: 20000}, d2c: 100 * time.Microsecond,
			window: 14 * time.Second,
			gaps:   append(repeat(15000, 25*time.Microsecond), repeat(5000, 2*time.Millisecond)...),
		},
		"contiguous": {segments: 254, reads: map[int64]uint64{1 << 20: 9000},
			d2c: 10 * time.Millisecond, window: 20 * time.Second},
		"cached": {reads: map[int64]uint64{128 << 10: 8000}, d2c: time.Millisecond,
			window: 20 * time.Second},
		"one-gap": {reads: map[int64]uint64{4096: 8000}, d2c: time.Millisecond,
			window: 20 * time.Second, gaps: repeat(1, 10*time.Second)},
		"traced": {
			reads:  map[int64]uint64{1 << 20: 9000, 4096: 1000},
			writes: map[int64]uint64{1 << 20: 400},
			d2c:    10 * time.Millisecond, window: 20 * time.Second,
		},
		"mixed": {reads: map[int64]uint64{4096: 900, 1 << 20: 90, 516 << 10: 5, 640 << 10: 5},
			window: time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := json.MarshalIndent(load.trace(), "", "\t")
			require.NoError(t, err)
			// Package tracing and the packages above it read these files.
			golden.Check(t, "../../testdata/traces/"+name+".json", string(got)+"\n")
		})
	}
}
