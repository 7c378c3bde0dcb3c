package plain

import (
	"fmt"

	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
)

// enough is how near the fastest an engine's setting has to come: nearer than that most pairs of a
// survey, measured once, do not tell apart.
const enough = 0.95

// Knee says where the knee is, and what that means in the settings of inference engines: lines of a
// topic, which may be empty, and a text. Of nil there are none. Of a search that had no time to
// find it there is no more than that.
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
	if !k.Known() {
		add("knee", "not known: the time was up after %d pairs of size and number in %s, before "+
			"what moves most had been measured often enough", len(k.Points), ns(k.NS))
		add("", "the window has the best so far, %d of %s, %s in flight: %s in the search",
			k.InFlight, bytes(k.RequestBytes), bytes(k.Bytes()), rate(k.Rate))
		return lines
	}
	between := ""
	if k.LeastBytes < k.MostBytes {
		between = fmt.Sprintf(" (%s to %s cannot be told apart)", bytes(k.LeastBytes),
			bytes(k.MostBytes))
	}
	add("knee", "%d of %s, %s in flight%s: %s, the fastest move %s; p99 %s", k.InFlight,
		bytes(k.RequestBytes), bytes(k.Bytes()), between, rate(k.Rate), rate(k.Best), ns(k.P99NS))
	why := map[string]string{
		result.KneePlateau: "sixteen times as many bytes in flight brought nothing",
		result.KneeLong: "four times as many bytes in flight brought nothing, and more would " +
			"wait for most of a second",
		result.KneeGrid: "there was no more to try: more in flight may move more",
	}[k.EndedBy]
	add("", "%d pairs of size and number in %s, until %s; measurements of one pair differ by %s "+
		"(standard deviation)", len(k.Points), ns(k.NS), why, units.Share.Text(k.Noise))
	engines(r, k, add)
	return lines
}

// engines says what the knee means for them.
func engines(r *result.Result, k *result.Knee, add func(string, string, ...any)) {
	add("engines", "as many objects at a time as come within 5 %% of the fastest")
	most := 0
	for _, o := range objects {
		text, n := inFlight(k, o.bytes)
		add("", "%s: %s", o.what, text)
		most = n
	}
	read, _ := r.StorageTraffic()
	if read.Requests == 0 {
		add("", "vLLM: n_write_threads (16), each of which writes all objects of a request, one "+
			"after the other: as many requests have to store at once")
		add("", "LMCache: num_workers (4)")
	} else {
		add("", "vLLM: n_read_threads (16), each of which reads all objects of a request, one "+
			"after the other: as many requests have to load at once")
		bound := ""
		if size := objects[len(objects)-1].bytes; most > 0 {
			bound = fmt.Sprintf("; read_max_bytes_in_flight (0 = 1536 MiB): %s at least, %s of %s",
				bytes(int64(most)*size), units.Plural(int64(most), "object"), bytes(size))
		}
		add("", "LMCache: num_workers (4), or read_io_depth (0 = off), which is the reads of all "+
			"its workers together%s", bound)
	}
	add("", "NIXL: the blocks of a batch (16), times the batches that are under way: 4 of KVBM's, "+
		"64 blocks")
}

// objects are what engines keep of a model of 128 KiB per token, llama3.1-8b. The last is
// LMCache's.
var objects = []struct {
	what  string
	bytes int64
}{
	{"objects of 64 KiB, a layer of 16 tokens", 64 << 10},
	{"objects of 2 MiB, 16 tokens of llama3.1-8b, vLLM's", 2 << 20},
	{"objects of 32 MiB, 256 tokens of it, LMCache's", 32 << 20},
}

// inFlight says how many requests of the largest size that was measured, and is not larger than an
// object, are enough; n is 0 where none of those measured is. What was measured again has the rate
// of that.
func inFlight(k *result.Knee, object int64) (text string, n int) {
	size := int64(0)
	for _, p := range k.Points {
		if p.RequestBytes <= object {
			size = max(size, p.RequestBytes)
		}
	}
	var most result.KneePoint
	tried := 0
	for _, p := range k.Points { // by bytes in flight, of one size by their number
		if p.RequestBytes != size {
			continue
		}
		if p.Rate >= enough*k.Best {
			return fmt.Sprintf("%d (%s with requests of %s)", p.InFlight, rate(p.Rate),
				bytes(size)), p.InFlight
		}
		if p.Rate > most.Rate {
			most = p
		}
		tried = max(tried, p.InFlight)
	}
	if tried == 0 {
		return "not tried", 0
	}
	return fmt.Sprintf("none of those tried, and not tried beyond %d; the fastest was %d (%s with "+
		"requests of %s)", tried, most.InFlight, rate(most.Rate), bytes(size)), 0
}
