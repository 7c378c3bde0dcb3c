package stats

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"

	"kvbench/kvbench/result"
	"kvbench/tools/load"
	"kvbench/tracing"
)

// MostIntervals is more columns than a chart can show.
const MostIntervals = tracing.MostIntervals

// Followed is a histogram of a result over time: its title, unit and intervals.
type Followed struct {
	Title, Label string
	At           []float64 // where intervals end, in seconds
	tracing.Growth
}

// source is the place of a histogram over time, and the factor of its unit.
type source struct {
	title, label, key string
	scale             float64
}

// follow takes histograms of a course, in at most so many intervals.
func follow(c *tracing.Course, most int, list ...source) (out []Followed) {
	if c == nil {
		return nil
	}
	c = c.Joined(most)
	for _, f := range list {
		if g := c.Histograms[f.key]; len(g.Counts) > 0 {
			g.From = slices.Clone(g.From)
			floats.Scale(f.scale, g.From)
			out = append(out, Followed{f.title, f.label, c.At, g})
		}
	}
	return out
}

// FollowTraced are the histograms over time of a trace.
func FollowTraced(rec *load.Record, most int) []Followed {
	return follow(rec.Course(), most,
		source{"Time of reads at the device", "D2C (µs, log scale)", "d2c_read_us", 1},
		source{"Time of writes at the device", "D2C (µs, log scale)", "d2c_write_us", 1},
		source{"Reads in flight at dispatch", "requests (log scale)", "qd_read", 1},
		source{"Writes in flight at dispatch", "requests (log scale)", "qd_write", 1})
}

// FollowCounted are the histograms over time that each result has. Times of requests at the device
// replace the latencies of entries where an entry is one request.
func FollowCounted(rec *load.Record, most int) []Followed {
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
	if rec.Result.CompletionUnit == result.UnitOperation { // there the entry is the request
		return follow(c, most, list...)
	}
	return follow(c, most, append(list,
		source{"Latency of requests, end to end", label, "request_end_to_end", 1e-3},
		source{"Time to first token", "time (ms, log scale)", "request_ttft", 1e-3})...)
}

// Rows are the counts of each interval, for all rows.
func (f *Followed) Rows() (out [][]int64) {
	for _, counts := range f.Counts {
		out = append(out, append(slices.Clone(counts), make([]int64, len(f.From)-len(counts))...))
	}
	return out
}

// Percentiles returns the percentiles of each interval, with gaps where there are too few values.
// Values are known to a half octave: the lower bound counts.
func (f *Followed) Percentiles(p float64) []float64 {
	out := make([]float64, len(f.At))
	for j := range f.At {
		v, ok := f.Percentile(j, p)
		if !ok {
			v = math.NaN()
		}
		out[j] = v
	}
	return out
}

// PercentileIntervals is the number of intervals for percentiles: of a second each, and at least
// ten. Most finer ones would have too few values.
func PercentileIntervals(rec *load.Record) int {
	return min(max(10, int(rec.Result.WindowNS/1e9)), MostIntervals)
}

// CoursePercentiles are those that are shown over time.
var CoursePercentiles = []float64{0.5, 0.95, 0.99}

// Rates are bytes per second in each interval. The last one ends with the window, and is left out
// where it is too short for a rate.
func Rates(tl *result.Timeline, bytes []int64) (out []float64) {
	for i, n := range bytes {
		length := tl.IntervalNS
		if i == len(bytes)-1 && tl.LastNS > 0 {
			length = tl.LastNS
		}
		if i == 0 || length >= tl.IntervalNS/2 {
			out = append(out, float64(n)/(float64(length)/1e9))
		}
	}
	return out
}

// Known are readings, with gaps where there was none.
func Known(readings []*int64) (out []float64) {
	for _, v := range readings {
		if v == nil {
			out = append(out, math.NaN())
		} else {
			out = append(out, float64(*v))
		}
	}
	return out
}
