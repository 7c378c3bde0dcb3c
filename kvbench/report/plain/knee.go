package plain

import (
	"fmt"

	"kvbench/kvbench/result"
)

// enough is how near the fastest an engine's setting has to come: nearer than that most pairs of a
// survey, measured once, do not tell apart.
const enough = 0.95

// Knee says where the knee is, and what that means in the settings of inference engines: lines of a
// topic, which may be empty, and a text. Of nil there are none.
//
// An engine asks for one object after the other in each of its threads, so that its threads are
// requests in flight, and the size of its objects is that of its requests. The settings and their
// defaults are those of the engines' main lines of September 2026.
func Knee(r *result.Result) (lines [][2]string) {
	if r.PlainIO == nil || r.PlainIO.Knee == nil {
		return nil
	}
	k := r.PlainIO.Knee
	add := func(topic, format string, args ...any) {
		lines = append(lines, [2]string{topic, fmt.Sprintf(format, args...)})
	}
	add("knee", "%d of %s, %s in flight: %s, the fastest moved %s; p99 %s", k.InFlight,
		bytes(k.RequestBytes), bytes(k.Bytes()), rate(k.Rate), rate(k.Best), ns(k.P99NS))
	why := map[string]string{
		result.KneePlateau: "sixteen times as many bytes in flight brought nothing",
		result.KneeGrid:    "there was no more to try: more in flight may move more",
		result.KneeTime:    "the time was up: more in flight may move more",
	}[k.EndedBy]
	add("", "%d pairs of size and number in %s, until %s", len(k.Points), ns(k.NS), why)
	read, _ := r.StorageTraffic()
	threads, workers := "n_read_threads", "num_workers (4), or read_io_depth for each of them"
	if read.Requests == 0 {
		threads, workers = "n_write_threads", "num_workers (4)"
	}
	add("engines", "as many objects at a time as come within 5 %% of the fastest: vLLM's %s (16), "+
		"LMCache's %s, the batch of NIXL (KVBM: 64)", threads, workers)
	for _, o := range objects {
		add("", "%s: %s", o.what, inFlight(k, o.bytes))
	}
	if read.Requests > 0 {
		add("", "LMCache's read_max_bytes_in_flight (0 = 1536 MiB): %s at least, shared by its "+
			"workers", bytes(k.Bytes()))
	}
	return lines
}

// objects are what engines keep of a model of 128 KiB per token, llama3.1-8b.
var objects = []struct {
	what  string
	bytes int64
}{
	{"objects of 64 KiB, a layer of 16 tokens", 64 << 10},
	{"objects of 2 MiB, 16 tokens of llama3.1-8b, vLLM's", 2 << 20},
	{"objects of 32 MiB, 256 tokens of it, LMCache's", 32 << 20},
}

// inFlight says how many requests of the largest size that was measured, and is not larger than an
// object, are enough.
func inFlight(k *result.Knee, object int64) string {
	size := int64(0)
	for _, p := range k.Points {
		if p.RequestBytes <= object {
			size = max(size, p.RequestBytes)
		}
	}
	var most result.KneePoint
	for _, p := range k.Points { // by bytes in flight, of one size by their number
		if p.RequestBytes != size {
			continue
		}
		if p.Rate >= enough*k.Best {
			return fmt.Sprintf("%d (%s with requests of %s)", p.InFlight, rate(p.Rate),
				bytes(size))
		}
		if p.Rate > most.Rate {
			most = p
		}
	}
	return fmt.Sprintf("no number is enough; the fastest was %d (%s with requests of %s)",
		most.InFlight, rate(most.Rate), bytes(size))
}
