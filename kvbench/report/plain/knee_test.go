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
		"knee: 8 of 256 KiB, 2 MiB in flight: 3.95 GiB/s, the fastest moved 4 GiB/s; p99 700 µs",
		": 7 pairs of size and number in 21 s, until sixteen times as many bytes in flight " +
			"brought nothing",
		"engines: as many objects at a time as come within 5 % of the fastest: vLLM's " +
			"n_read_threads (16), LMCache's num_workers (4), or read_io_depth for each of them, " +
			"the batch of NIXL (KVBM: 64)",
		": objects of 64 KiB, a layer of 16 tokens: no number is enough; the fastest was 16 " +
			"(2 GiB/s with requests of 64 KiB)",
		": objects of 2 MiB, 16 tokens of llama3.1-8b, vLLM's: 4 (3.81 GiB/s with requests of " +
			"1 MiB)",
		": objects of 32 MiB, 256 tokens of it, LMCache's: 4 (3.81 GiB/s with requests of 1 MiB)",
		": LMCache's read_max_bytes_in_flight (0 = 1536 MiB): 2 MiB at least, shared by its " +
			"workers",
	}, text)
	r.Tiers[0].Read.Requests = 0
	assert.Contains(t, Knee(r)[2][1], "vLLM's n_write_threads (16)")
	assert.Len(t, Knee(r), 6, "what is for reads alone")
	k.EndedBy = result.KneeTime
	assert.Contains(t, Knee(r)[1][1], "the time was up: more in flight may move more")
	assert.Empty(t, Knee(&result.Result{}))
}
