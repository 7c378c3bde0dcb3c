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

// Octaves has counts of values by octave. The key is the end of the octave, a power of two; values
// below 1 have the key 1.
type Octaves map[float64]int64

// TraceOctaves returns the sum of one tracing histogram over all trials and their ranks. It converts
// linear histograms (queue depth, addresses) to octaves, and counts values below 1 in the octave from 1
// to 2.
func TraceOctaves(trials []*load.Record, key string) (out Octaves, kind tracing.Kind) {
	out = Octaves{}
	for _, trial := range trials {
		for _, rec := range trial.Clients() { // only the file of a rank has its trace
			for _, h := range rec.Tracing() {
				if h.Key != key {
					continue
				}
				kind = h.Kind
				for _, b := range h.Buckets {
					out[math.Exp2(math.Floor(math.Log2(max(1, b.Range[0])))+1)] += b.Count
				}
			}
		}
	}
	return out, kind
}

// Shares returns the ends of the octaves from the first to the last of any histogram, and for each
// histogram the share of its values in each octave.
func Shares(hists []Octaves) (ends []float64, shares [][]float64) {
	all := Octaves{}
	for _, h := range hists {
		maps.Copy(all, h)
	}
	if len(all) == 0 {
		return nil, nil
	}
	known := slices.Sorted(maps.Keys(all))
	for end := known[0]; end <= known[len(known)-1]; end *= 2 {
		ends = append(ends, end)
	}
	for _, h := range hists {
		total, list := int64(0), make([]float64, len(ends))
		for _, n := range h {
			total += n
		}
		for i, end := range ends {
			list[i] = float64(h[end]) / float64(total)
		}
		shares = append(shares, list)
	}
	return ends, shares
}
