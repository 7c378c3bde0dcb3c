package stats

import (
	"maps"
	"math"
	"slices"

	"kvbench/kvbench/result"
	"kvbench/tools/load"
	"kvbench/tracing"
)

// Merge returns the sum of one histogram of several trials, nil if no trial has it. It skips a
// histogram that cannot be decoded.
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

// MedianPlace and P95Place are the positions of the median and of p95 on a percentile curve: log10 of 2
// and of 20, with the digits of charts. A position is the number of nines.
const (
	MedianPlace = 0.30103
	P95Place    = 1.30103
)

// nines are the positions of the points of a percentile curve: 1 is p90, 2 is p99.
var nines = func() []float64 {
	list := []float64{MedianPlace, P95Place}
	for i := range 101 {
		list = append(list, float64(i)/20)
	}
	slices.Sort(list)
	return list
}()

// Percentiles returns the percentile curve of a histogram, up to the last percentile with enough values
// above it.
func Percentiles(h *result.Histogram) (places, values []float64) {
	for _, x := range nines {
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

// TraceShares returns the kind of a tracing histogram, the ends of its octaves from the first to the last with
// values, and the share of the values in each octave, over all trials and their ranks. It counts values below 1
// in the octave from 1 to 2. Linear histograms (queue depth, addresses) become octaves, too.
func TraceShares(trials []*load.Record, key string) (kind tracing.Kind, ends, shares []float64) {
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
