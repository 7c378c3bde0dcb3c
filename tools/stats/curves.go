package stats

import (
	"maps"
	"math"
	"slices"

	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
	"kvbench/tools/load"
)

// Merge adds up one histogram of several trials; nil when none has it. A histogram that cannot be
// decoded is left out: the numbers beside it in the file do not depend on it.
func Merge(trials []*load.Record, key string) *result.Histogram {
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

// Point of a percentile curve: the share Share of all values does not exceed Value.
type Point struct{ Share, Value float64 }

// Nines is where a share stands on an axis that gives every further nine the same room: 0.9 is 1,
// 0.99 is 2.
func Nines(share float64) float64 { return -math.Log10(1 - share) }

// Percentiles is the curve of a histogram up to the last percentile that ten values lie beyond.
func Percentiles(h *result.Histogram) (out []Point) {
	for x := 0.0; x <= 5; x += 0.05 {
		p := 1 - math.Pow(10, -x)
		// A percentile that fewer than ten values lie beyond is chance.
		if x > 0 && !result.Supported(max(p, 0.5), h.Count()) {
			break
		}
		if v, ok := h.Percentile(p); ok {
			out = append(out, Point{p, float64(v)})
		}
	}
	return out
}

// Bucket counts the values of at least Low and less than High.
type Bucket struct {
	Low, High float64
	Count     int64
}

// Octaves are the values of a histogram by powers of two, from the first to the last octave that
// has any.
func Octaves(h *result.Histogram) (out []Bucket) {
	below := int64(0)
	for end := int64(1); below < h.Count() && end < 1<<62; end *= 2 {
		upTo := h.AtMost(end - 1)
		if n := upTo - below; n > 0 || len(out) > 0 {
			out = append(out, Bucket{float64(end / 2), float64(end), n})
		}
		below = upTo
	}
	return out
}

// TraceOctaves adds up one tracing histogram of several trials, and of all their ranks, by powers
// of two, linear ones (queue depth, addresses) too.
func TraceOctaves(trials []*load.Record, key string) (out []Bucket, about load.TraceHistogram) {
	counts := map[float64]int64{}
	add := func(h load.TraceHistogram) {
		about = h
		for _, b := range h.Buckets {
			low := 0.0
			if b.Range[0] >= 1 {
				low = math.Exp2(math.Floor(math.Log2(b.Range[0])))
			}
			counts[low] += b.Count
		}
	}
	for _, trial := range trials {
		for _, rec := range trial.Clients() { // what the kernel saw of each is in its file alone
			for _, h := range rec.Tracing() {
				if h.Key == key {
					add(h)
				}
			}
		}
	}
	for _, low := range slices.Sorted(maps.Keys(counts)) {
		out = append(out, Bucket{low, max(1, 2*low), counts[low]})
	}
	return out, about
}

// From is where an octave begins, 1 for what is below.
func (b Bucket) From() float64 { return max(1, b.Low) }

// UpTo is where an octave ends.
func (b Bucket) UpTo() float64 { return b.High }

// Shares lays histograms of octaves side by side: the bounds that any of them has, and for each the
// share of its values in every octave.
func Shares(hists [][]Bucket, bound func(Bucket) float64) (bounds []float64, shares [][]float64) {
	if len(hists) == 0 {
		return nil, nil
	}
	lo, hi := math.Inf(1), 0.0
	for _, h := range hists {
		lo, hi = min(lo, bound(h[0])), max(hi, bound(h[len(h)-1]))
	}
	for at := lo; at <= hi; at *= 2 {
		bounds = append(bounds, at)
	}
	for _, h := range hists {
		total, list := int64(0), make([]float64, len(bounds))
		for _, b := range h {
			total += b.Count
			if i := slices.Index(bounds, bound(b)); i >= 0 {
				list[i] += float64(b.Count)
			}
		}
		for i := range list {
			list[i] /= float64(total)
		}
		shares = append(shares, list)
	}
	return bounds, shares
}

// Median of one number of the result files, over the trials that have it.
func Median(trials []*load.Record, of func(*load.Record) any) (float64, bool) {
	var list []float64
	for _, rec := range trials {
		if v, ok := of(rec).(float64); ok {
			list = append(list, v)
		}
	}
	return units.Median(list)
}
