package plain

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"kvbench/kvbench/result"
)

func TestTheKneeInTheSettingsOfEngines(t *testing.T) {
	const kib, mib, gib = 1 << 10, 1 << 20, float64(1 << 30)
	k := &result.Knee{RequestBytes: 256 * kib, InFlight: 8, Rate: 3.95 * gib, Best: 4 * gib,
		P99NS: new(int64(700e3)), EndedBy: result.KneePlateau, NS: 21e9,
		Noise: 0.021, LeastBytes: mib, MostBytes: 4 * mib,
		Points: []result.KneePoint{
			{RequestBytes: 64 * kib, InFlight: 8, Rate: 1 * gib},
			{RequestBytes: 64 * kib, InFlight: 16, Rate: 2 * gib},
			{RequestBytes: 256 * kib, InFlight: 4, Rate: 3 * gib},
			{RequestBytes: 64 * kib, InFlight: 32, Rate: 1.9 * gib},
			{RequestBytes: 256 * kib, InFlight: 8, Rate: 3.95 * gib},
			{RequestBytes: mib, InFlight: 2, Rate: 3.79 * gib},
			{RequestBytes: mib, InFlight: 4, Rate: 3.81 * gib}}}
	r := &result.Result{PlainIO: &result.PlainIO{Knee: k},
		Tiers: []result.Tier{{Level: "storage", Read: result.TierTraffic{Requests: 1}}}}
	var text []string
	for _, line := range Knee(r) {
		text = append(text, line[0]+": "+line[1])
	}
	assert.Equal(t, []string{
		"knee: 8 of 256 KiB, 2 MiB in flight (1 MiB to 4 MiB cannot be told apart): 3.95 GiB/s, " +
			"the fastest move 4 GiB/s; p99 700 µs",
		": 7 pairs of size and number in 21 s, until sixteen times as many bytes in flight " +
			"brought nothing; measurements of one pair differ by 2.10 % (standard deviation)",
		"engines: as many objects at a time as come within 5 % of the fastest",
		": objects of 64 KiB, a layer of 16 tokens: none of those tried, and not tried beyond 32; " +
			"the fastest was 16 (2 GiB/s with requests of 64 KiB)",
		": objects of 2 MiB, 16 tokens of llama3.1-8b, vLLM's: 4 (3.81 GiB/s with requests of " +
			"1 MiB)",
		": objects of 32 MiB, 256 tokens of it, LMCache's: 4 (3.81 GiB/s with requests of 1 MiB)",
		": vLLM: n_read_threads (16), each of which reads all objects of a request, one after " +
			"the other: as many requests have to load at once",
		": LMCache: num_workers (4), or read_io_depth (0 = off), which is the reads of all its " +
			"workers together; read_max_bytes_in_flight (0 = 1536 MiB): 128 MiB at least, " +
			"4 objects of 32 MiB",
		": NIXL: the blocks of a batch (16), times the batches that are under way: 4 of KVBM's, " +
			"64 blocks",
	}, text)
	r.Tiers[0].Read.Requests = 0
	assert.Contains(t, Knee(r)[6][1], "vLLM: n_write_threads (16)")
	assert.Equal(t, "LMCache: num_workers (4)", Knee(r)[7][1], "what is for reads alone")
	k.LeastBytes = k.MostBytes
	assert.Contains(t, Knee(r)[0][1], "2 MiB in flight: 3.95 GiB/s")
	k.EndedBy = result.KneeLong
	assert.Contains(t, Knee(r)[1][1], "more would wait for most of a second")
	k.Points = k.Points[:2]
	assert.Contains(t, Knee(r)[5][1], "not tried beyond 16")
	assert.Empty(t, Knee(&result.Result{}))
}

// What time ended before it was known is no knee, and nobody is to set an engine by it.
func TestAnUnknownKneeIsNone(t *testing.T) {
	k := &result.Knee{RequestBytes: 256 << 10, InFlight: 8, Rate: 1 << 30, EndedBy: result.KneeTime,
		NS: 35e9, Points: make([]result.KneePoint, 9)}
	r := &result.Result{PlainIO: &result.PlainIO{Knee: k}}
	assert.Equal(t, [][2]string{
		{"knee", "not known: the time was up after 9 pairs of size and number in 35 s, before " +
			"what moves most had been measured often enough"},
		{"", "the window has the best so far, 8 of 256 KiB, 2 MiB in flight: 1 GiB/s in the search"},
	}, Knee(r))
	unit := func() (is bool) {
		for _, m := range r.Metrics() {
			is = is || m.Unit == "knee-bytes"
		}
		return is
	}
	assert.False(t, unit())
	k.EndedBy = result.KneePlateau
	assert.True(t, unit())
}
