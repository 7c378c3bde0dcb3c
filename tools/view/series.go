package view

import (
	"maps"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"

	"kvbench/kvbench/result"
	"kvbench/tools/load"
	"kvbench/tracing"
)

// merged returns the sum of one histogram of several trials, nil if no trial has it. It skips a
// histogram that cannot be decoded.
func merged(trials []*load.Record, key string) *result.Histogram {
	var sum *result.Histogram
	for _, rec := range trials {
		if rec.Result == nil {
			continue
		}
		h, err := rec.Result.Histograms[key].Decode()
		if err == nil && sum != nil {
			sum.Merge(h)
		} else if err == nil {
			sum = h
		}
	}
	return sum
}

// medianPlace and p95Place are the positions of the median and of p95 on a percentile curve: log10 of 2
// and of 20, with the digits of charts. A position is the number of nines.
const (
	medianPlace = 0.30103
	p95Place    = 1.30103
)

// curvePlaces are the positions of the points of a percentile curve: 1 is p90, 2 is p99.
var curvePlaces = func() []float64 {
	list := []float64{medianPlace, p95Place}
	for i := range 101 {
		list = append(list, float64(i)/20)
	}
	slices.Sort(list)
	return list
}()

// percentiles returns the percentile curve of a histogram, up to the last percentile with enough values
// above it.
func percentiles(h *result.Histogram) (places, values []float64) {
	for _, x := range curvePlaces {
		p := 1 - math.Pow(10, -x)
		// A percentile with too few values above it is chance.
		if x > 0 && !result.Supported(max(p, 0.5), h.Count()) {
			break
		}
		if v, ok := h.Percentile(p); ok {
			places, values = append(places, x), append(values, float64(v))
		}
	}
	return places, values
}

// traceShares returns the kind of a tracing histogram, the ends of its octaves from the first to the last with
// values, and the share of the values in each octave, over all trials and their ranks. It counts values below 1
// in the octave from 1 to 2. Linear histograms (queue depth, addresses) become octaves, too.
func traceShares(trials []*load.Record, key string) (kind tracing.Kind, ends, shares []float64) {
	counts, total := map[float64]int64{}, int64(0) // by end of the octave
	for _, trial := range trials {
		for _, rec := range trial.Clients() { // only the file of a rank has its trace
			for _, h := range rec.Tracing() {
				if h.Key != key {
					continue
				}
				kind = h.Kind
				for _, b := range h.Buckets {
					counts[math.Exp2(math.Floor(math.Log2(max(1, b.Range[0])))+1)] += b.Count
					total += b.Count
				}
			}
		}
	}
	if total == 0 {
		return kind, nil, nil
	}
	known := slices.Sorted(maps.Keys(counts))
	for end := known[0]; end <= known[len(known)-1]; end *= 2 {
		ends, shares = append(ends, end), append(shares, float64(counts[end])/float64(total))
	}
	return kind, ends, shares
}

// followed is a histogram over time, with its title and the label of its axis.
type followed struct {
	title, label string
	at           []float64 // ends of the intervals, in seconds
	tracing.Series
}

// source names a histogram of a course, and the factor that converts its unit.
type source struct {
	title, label, key string
	scale             float64
}

// follow returns the listed histograms of a course that exist, in at most most intervals.
func follow(c *tracing.Course, most int, list ...source) (out []followed) {
	if c == nil {
		return nil
	}
	c = c.Joined(most)
	for _, f := range list {
		if g := c.Histograms[f.key]; len(g.Counts) > 0 {
			g.From = slices.Clone(g.From)
			floats.Scale(f.scale, g.From)
			out = append(out, followed{f.title, f.label, c.At, g})
		}
	}
	return out
}

// followTraced returns the histograms over time of a trace.
func followTraced(rec *load.Record, most int) []followed {
	return follow(rec.Course(), most,
		source{"Time of reads at the device", "D2C (µs, log scale)", "d2c_read_us", 1},
		source{"Time of writes at the device", "D2C (µs, log scale)", "d2c_write_us", 1},
		source{"Reads in flight at dispatch", "requests (log scale)", "qd_read", 1},
		source{"Writes in flight at dispatch", "requests (log scale)", "qd_write", 1})
}

// followCounted returns the histograms over time of a result. If an entry is a single request, it uses
// the latencies of requests instead of those of entries.
func followCounted(rec *load.Record, most int) []followed {
	c := rec.Result.Timeline.Course()
	if c == nil {
		return nil
	}
	const label = "latency (ms, log scale)"
	var list []source
	for _, op := range []string{"read", "write"} {
		key, what := "storage_"+op, "an entry"
		if _, ok := c.Histograms[key]; !ok {
			key, what = key+"_request", "a request"
		}
		list = append(list,
			source{"Latency of " + what + " on the storage tier, " + op, label, key, 1e-3})
	}
	if rec.Result.CompletionUnit == result.UnitOperation { // here an operation is the request
		return follow(c, most, list...)
	}
	return follow(c, most, append(list,
		source{"Latency of requests, end to end", label, "request_end_to_end", 1e-3},
		source{"Time to first token", "time (ms, log scale)", "request_ttft", 1e-3})...)
}
