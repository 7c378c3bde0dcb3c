package report

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"

	"kvbench/kvbench/result"
)

func TestTheKneeInTheSettingsOfEngines(t *testing.T) {
	const kib, mib, gib = 1 << 10, 1 << 20, float64(1 << 30)
	point := func(size int64, n int, rate float64) result.KneePoint {
		return result.KneePoint{RequestBytes: size, InFlight: n, Rate: rate * gib,
			Min: (rate - 0.1) * gib, Max: (rate + 0.1) * gib}
	}
	k := &result.Knee{RequestBytes: 256 * kib, InFlight: 8, Rate: 3.95 * gib, Best: 4 * gib,
		P99NS: new(int64(700e3)), EndedBy: result.KneeGrid, NS: 27e9, OrderSeed: 42,
		Points: []result.KneePoint{point(64*kib, 8, 1), point(64*kib, 16, 2),
			point(256*kib, 4, 3), point(64*kib, 32, 1.9), point(256*kib, 8, 3.95),
			point(mib, 2, 3.79), point(mib, 4, 3.81), point(mib, 8, 3.6)}}
	r := &result.Result{PlainIO: &result.PlainIO{Knee: k}, Tiers: []result.Tier{{Level: "storage",
		Read: result.TierTraffic{Requests: 1, BytesPerSecond: new(4.43 * gib)}}}}
	var text []string
	for _, line := range kneeLines(r) {
		text = append(text, line[0]+": "+line[1])
	}
	assert.Equal(t, []string{
		"knee: 8 of 256 KiB, 2 MiB in flight: 3.95 GiB/s, within 5 % of the 4 GiB/s that the " +
			"best cell reached in each measurement; p99 700 µs",
		": 2 other cells equal it within the spread (=), 2 MiB to 4 MiB in flight with the knee",
		": the window moved 4.43 GiB/s, 112 % of the cell's median", // case K2
		": 8 cells in 27 s, each the median of three measurements (lowest to highest) in random " +
			"order, seed 42",
		"engines: as many objects at a time as come within 5 % of the best cell",
		": objects of 64 KiB, a layer of 16 tokens: none of those measured, which are up to 32; " +
			"the fastest was 16 (2 GiB/s with requests of 64 KiB)",
		": objects of 2 MiB, 16 tokens of llama3.1-8b, vLLM's: 4 (3.81 GiB/s with requests of " +
			"1 MiB)",
		": objects of 32 MiB, 256 tokens of it, LMCache's: 4 (3.81 GiB/s with requests of 1 MiB)",
		": vLLM: n_read_threads (16), each of which reads all objects of a request, one after " +
			"the other: as many requests have to load at once",
		": LMCache: num_workers (4), or read_io_depth (0 = off), which is the reads of all its " +
			"workers together; read_max_bytes_in_flight (0 = 1536 MiB): 128 MiB at least, " +
			"4 objects of 32 MiB",
		": NIXL: the blocks of a batch (16), times the batches in flight: 4 of KVBM's, 64 blocks",
	}, text)
	r.Tiers[0].Read.Requests = 0
	assert.Contains(t, kneeLines(r)[7][1], "vLLM: n_write_threads (16)")
	assert.Equal(t, "LMCache: num_workers (4)", kneeLines(r)[8][1], "without the settings of reads")
	assert.NotContains(t, kneeLines(r)[2][1], "edge")
	k.Points = k.Points[:5]
	assert.Contains(t, kneeLines(r)[1][1], "the knee is at the edge of the grid, 2 MiB in flight")
	assert.Empty(t, kneeLines(&result.Result{}))
}

// A grid that ended early has no knee, and no engine is to be set by it.
func TestAnUnknownKneeIsNone(t *testing.T) {
	k := &result.Knee{RequestBytes: 256 << 10, InFlight: 8, Rate: 1 << 30, EndedBy: result.KneeTime,
		NS: 35e9, Points: make([]result.KneePoint, 9)}
	r := &result.Result{PlainIO: &result.PlainIO{Knee: k}}
	assert.Equal(t, [][2]string{
		{"knee", "not known: the time was up after 35 s, before each of 9 cells was measured three " +
			"times"},
		{"", "the window has the best so far, 8 of 256 KiB, 2 MiB in flight: 1 GiB/s in the grid"},
	}, kneeLines(r))
	knees := func() int {
		return len(slices.DeleteFunc(r.Metrics(), func(m result.Metric) bool {
			return m.Unit != "knee-bytes"
		}))
	}
	assert.Zero(t, knees())
	k.EndedBy = result.KneeInterrupted
	assert.Zero(t, knees())
	assert.Equal(t, [][2]string{{"knee", "not known: the grid was interrupted after 35 s, with " +
		"9 cells measured"}}, kneeLines(r))
	k.EndedBy = result.KneeGrid
	assert.Equal(t, 1, knees())
}
