package result

import (
	"fmt"
	"math"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"kvbench/kvbench/units"
)

// Three significant digits keep every value within 0.1 %.
const histDigits = 3

// rangeOf returns the largest value that a histogram of this unit resolves: a day for times, 4 TiB
// for sizes, 4 TiB/s for rates. A window may last a day, and open-loop latency counts from the
// intended arrival.
func rangeOf(u units.Unit) int64 {
	if u == units.Nanoseconds {
		return 24 * 3600 * 1e9
	}
	return 1 << 42
}

// Histogram is an HDR histogram of non-negative integers. Count, sum, minimum and maximum are
// exact; other values are within 0.1 %. It has a fixed size of about 300 KB of address space. A
// value above the range counts as the end of the range, and in OutOfRange; percentiles are then a
// lower bound. A Histogram is not safe for concurrent use.
type Histogram struct {
	h *hdrhistogram.Histogram
	n HistogramData // all numbers except the count, which h has
}

// NewHistogram returns an empty histogram.
func NewHistogram(u units.Unit) *Histogram {
	return &Histogram{
		h: hdrhistogram.New(1, rangeOf(u), histDigits),
		n: HistogramData{Unit: u, Min: math.MaxInt64},
	}
}

// Record adds a value. A negative value (the clock went back) counts as 0.
func (h *Histogram) Record(v int64) {
	v = max(v, 0)
	n := &h.n
	n.Sum += float64(v)
	n.Min, n.Max = min(n.Min, v), max(n.Max, v)
	if r := h.h.HighestTrackableValue(); v > r {
		n.OutOfRange++
		v = r
	}
	// RecordValue fails only for a value out of range or a count of 2⁶³.
	_ = h.h.RecordValue(v)
}

// Merge adds all values of o to h. o must have the same unit, or be nil.
func (h *Histogram) Merge(o *Histogram) {
	if o.Count() == 0 {
		return
	}
	h.h.Merge(o.h)
	h.n.Sum += o.n.Sum
	h.n.Min, h.n.Max = min(h.n.Min, o.n.Min), max(h.n.Max, o.n.Max)
	h.n.OutOfRange += o.n.OutOfRange
}

// Count returns the number of values, 0 for a nil histogram.
func (h *Histogram) Count() int64 {
	if h == nil {
		return 0
	}
	return h.h.TotalCount()
}

// Percentile returns the p-th percentile for p in 0…1, for any number of samples, and whether there
// are values. The rank is p × count, rounded.
func (h *Histogram) Percentile(p float64) (int64, bool) {
	if h.Count() == 0 {
		return 0, false
	}
	v := h.h.ValueAtPercentile(p * 100)
	return min(max(v, h.n.Min), h.n.Max), true
}

// Supported reports whether n samples are enough for percentile p: at least ten samples must be
// beyond p on its thinner side. An upper percentile needs 10/(1−p) samples (p95: 200, p99: 1000), a
// lower percentile 10/p.
func Supported(p float64, n int64) bool {
	tail := min(p, 1-p)
	return float64(n)*tail >= 10*(1-1e-9)
}

// Mean returns the exact mean, and whether there are values.
func (h *Histogram) Mean() (float64, bool) {
	if h.Count() == 0 {
		return 0, false
	}
	return h.n.Sum / float64(h.Count()), true
}

// AtMost returns how many values are at most v. Within the histogram's resolution it counts only
// buckets that are entirely at most v.
func (h *Histogram) AtMost(v int64) int64 {
	if h.Count() == 0 {
		return 0
	}
	if v >= h.n.Max {
		return h.Count()
	}
	var n int64
	for _, b := range h.h.Distribution() {
		if b.To > v {
			break
		}
		n += b.Count
	}
	return n
}

// HistogramData is the form of a histogram in a result. Histograms of several ranks or trials can
// be merged from it. Data is the HdrHistogram V2 compressed encoding in base64, which HdrHistogram
// libraries of all languages read.
type HistogramData struct {
	Unit       units.Unit `json:"unit"`
	Count      int64      `json:"count"`
	Sum        float64    `json:"sum"`
	Min        int64      `json:"min"`
	Max        int64      `json:"max"`
	OutOfRange int64      `json:"out_of_range,omitempty"`
	Encoding   string     `json:"encoding"`
	Data       string     `json:"data"`
}

const histEncoding = "hdr-v2-deflate-base64"

// Encode returns the form of h in a result.
func (h *Histogram) Encode() HistogramData {
	b, _ := h.h.Encode(hdrhistogram.V2CompressedEncodingCookieBase) // fails only for another version
	d := h.n
	d.Count, d.Encoding, d.Data = h.Count(), histEncoding, string(b)
	return d
}

// Decode returns the histogram that was encoded. It returns an error if the encoding is unknown or
// the number of values or their range does not match.
func (d HistogramData) Decode() (*Histogram, error) {
	if d.Encoding != histEncoding {
		return nil, fmt.Errorf("decode histogram: encoding %q is not %q; the file is of another "+
			"version", d.Encoding, histEncoding)
	}
	in, err := hdrhistogram.Decode([]byte(d.Data))
	if err != nil {
		return nil, fmt.Errorf("decode histogram of %d values: %w", d.Count, err)
	}
	if in.TotalCount() != d.Count || in.HighestTrackableValue() != rangeOf(d.Unit) {
		return nil, fmt.Errorf("decode histogram: %d values up to %d in the data, %d up to %d announced",
			in.TotalCount(), in.HighestTrackableValue(), d.Count, rangeOf(d.Unit))
	}
	d.Data = "" // frees memory
	return &Histogram{h: in, n: d}, nil
}

// NewDistribution returns the distribution of h. h may be nil.
func NewDistribution(u units.Unit, h *Histogram) Distribution {
	d := Distribution{Unit: u, Count: h.Count()}
	if d.Count == 0 {
		return d
	}
	n := h.n
	d.Mean = units.Ratio(n.Sum, d.Count)
	d.Min, d.Max, d.OutOfRange = &n.Min, &n.Max, n.OutOfRange
	// In one pass over the buckets.
	values := h.h.ValueAtPercentilesSlice([]float64{5, 50, 95, 99, 99.9, 99.99})
	for i, to := range []struct {
		p     float64
		value **int64
	}{{0.05, &d.P5}, {0.5, &d.P50}, {0.95, &d.P95}, {0.99, &d.P99}, {0.999, &d.P999},
		{0.9999, &d.P9999}} {
		if Supported(to.p, d.Count) {
			*to.value = new(min(max(values[i], n.Min), n.Max))
		}
	}
	return d
}

// PercentileMS returns Percentile(p) in milliseconds, nil without values.
func (h *Histogram) PercentileMS(p float64) *float64 {
	if v, ok := h.Percentile(p); ok {
		return new(Milliseconds(v))
	}
	return nil
}

// InterpolatedMS returns the p-th percentile in milliseconds as np.percentile defines it, nil without
// values: at position (n − 1) p among the sorted samples, on a straight line between its two neighbours.
// The histogram knows each neighbour within 0.1 %.
func (h *Histogram) InterpolatedMS(p float64) *float64 {
	n := h.Count()
	if n == 0 {
		return nil
	}
	sample := func(i float64) float64 { // the i-th sample from 0
		v, _ := h.Percentile((i + 1) / float64(n))
		return Milliseconds(v)
	}
	below, share := math.Modf(float64(n-1) * p)
	low := sample(below)
	return new(low + share*(sample(min(below+1, float64(n-1)))-low))
}

// Milliseconds converts nanoseconds to milliseconds.
func Milliseconds(ns int64) float64 { return float64(ns) / float64(time.Millisecond) }
