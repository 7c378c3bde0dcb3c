package load

import (
	"encoding/json"
	"slices"

	"kvbench/tracing"
)

// TraceHistogram is one histogram of block-layer tracing with what it is called.
type TraceHistogram struct {
	tracing.Kind

	// Only the buckets with samples. Percentiles are as the file gives them, else lower bounds of
	// their buckets: the Python benchmark gives none.
	tracing.Histogram
}

// Tracing returns the histograms of the result file that have samples. Results without tracing have
// none.
func (rec *Record) Tracing() (out []TraceHistogram) {
	// The raw file is read, not the typed result: the Python benchmark has the same keys.
	section := rec.section("device_latency_tracing")
	if section == nil { // as of thousands of lines without a file
		return nil
	}
	var all map[string]json.RawMessage
	_ = json.Unmarshal(section, &all)
	for _, kind := range tracing.Kinds {
		h := TraceHistogram{Kind: kind}
		if json.Unmarshal(all[h.Key], &h.Histogram) != nil {
			continue
		}
		empty := func(b tracing.Bucket) bool { return b.Count <= 0 }
		h.Buckets = slices.DeleteFunc(h.Buckets, empty)
		h.Count = 0
		for _, b := range h.Buckets {
			h.Count += b.Count
		}
		if h.Count <= 0 {
			continue
		}
		for p, to := range map[float64]**float64{0.50: &h.P50, 0.95: &h.P95, 0.99: &h.P99} {
			if *to == nil {
				*to = new(h.bound(p))
			}
		}
		out = append(out, h)
	}
	return out
}

// Course returns the traced histograms as a time series; nil where the file has none.
func (rec *Record) Course() *tracing.Course {
	var seen struct {
		Course *tracing.Course `json:"over_time"`
	}
	section := rec.section("device_latency_tracing")
	if section == nil || json.Unmarshal(section, &seen) != nil || seen.Course == nil ||
		!seen.Course.Sound() {
		return nil
	}
	return seen.Course
}

// bound is the lower bound of the bucket in which a percentile lies.
func (h TraceHistogram) bound(p float64) float64 {
	below := int64(0)
	i := slices.IndexFunc(h.Buckets, func(b tracing.Bucket) bool {
		below += b.Count
		return float64(below) >= p*float64(h.Count)
	})
	return h.Buckets[i].Range[0]
}
