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

// rangeOf returns the largest value a histogram of this unit resolves. A day for times, because a
// window may last as long and open-loop latency counts from the intended arrival; 4 TiB for sizes,
// 4 TiB/s for rates.
func rangeOf(u units.Unit) int64 {
	if u == units.Nanoseconds {
		return 24 * 3600 * 1e9
	}
	return 1 << 42
}

// Histogram is a distribution of non-negative integers in constant memory (about 300 KB, of which
// the operating system provides what is touched), with exact count, sum, minimum and maximum and
// values within 0.1 %. Values above the range count as its end, so that percentiles stay an honest
// lower bound, and are counted in OutOfRange. It is not safe for concurrent use.
type Histogram struct {
	h *hdrhistogram.Histogram
	n HistogramData // its numbers; the count is known to h
}

// NewHistogram makes an empty histogram.
func NewHistogram(u units.Unit) *Histogram {
	return &Histogram{
		h: hdrhistogram.New(1, rangeOf(u), histDigits),
		n: HistogramData{Unit: u, Min: math.MaxInt64},
	}
}

// Record adds one value; a negative one (a clock that went back) counts as 0.
func (h *Histogram) Record(v int64) {
	v = max(v, 0)
	n := &h.n
	n.Sum += float64(v)
	n.Min, n.Max = min(n.Min, v), max(n.Max, v)
	if r := rangeOf(n.Unit); v > r {
		n.OutOfRange++
		v = r
	}
	// The value is in range and the count cannot reach 2⁶³, the two things that RecordValue
	// refuses.
	_ = h.h.RecordValue(v)
}

// Merge adds all of o, which must have the same unit, to h. o may be nil.
func (h *Histogram) Merge(o *Histogram) {
	if o == nil {
		return
	}
	h.h.Merge(o.h)
	h.n.Sum += o.n.Sum
	h.n.Min, h.n.Max = min(h.n.Min, o.n.Min), max(h.n.Max, o.n.Max)
	h.n.OutOfRange += o.n.OutOfRange
}

// Count returns the number of values; 0 for a nil histogram.
func (h *Histogram) Count() int64 {
	if h == nil {
		return 0
	}
	return h.h.TotalCount()
}

// Percentile returns the value that the share p (0…1) of all values does not exceed, whatever the
// sample count, and whether there are values at all. The rank is p × count, rounded.
func (h *Histogram) Percentile(p float64) (int64, bool) {
	if h.Count() == 0 {
		return 0, false
	}
	v := h.h.ValueAtPercentile(p * 100)
	return min(max(v, h.n.Min), h.n.Max), true
}

// Supported says whether n samples are enough for percentile p: there must be ten beyond it on its
// thinner side, so 10/(1−p) in all for the upper ones (p95: 200, p99: 1000) and 10/p for the lower.
func Supported(p float64, n int64) bool {
	tail := min(p, 1-p)
	return float64(n)*tail >= 10*(1-1e-9)
}

// Mean returns the exact mean and whether there are values at all.
func (h *Histogram) Mean() (float64, bool) {
	if h.Count() == 0 {
		return 0, false
	}
	return h.n.Sum / float64(h.Count()), true
}

// AtMost returns how many values do not exceed v, to the histogram's resolution: a bucket counts
// when all of it does.
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

// HistogramData is a histogram as it stands in a result: enough to merge the histograms of several
// ranks or trials. Data is the HdrHistogram V2 compressed encoding in base64, which the
// HdrHistogram libraries of all languages read.
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

// Encode returns the mergeable form of a histogram that has values; others are left out of results.
func (h *Histogram) Encode() (HistogramData, error) {
	b, err := h.h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	if err != nil {
		return HistogramData{}, fmt.Errorf("encode histogram of %d values: %w", h.Count(), err)
	}
	d := h.n
	d.Count, d.Encoding, d.Data = h.Count(), histEncoding, string(b)
	return d, nil
}

// Decode returns the histogram that was encoded.
func (d HistogramData) Decode() (*Histogram, error) {
	if d.Encoding != histEncoding {
		return nil, fmt.Errorf("decode histogram: encoding %q is not %q; the file is of another "+
			"version", d.Encoding, histEncoding)
	}
	in, err := hdrhistogram.Decode([]byte(d.Data))
	if err != nil {
		return nil, fmt.Errorf("decode histogram of %d values: %w", d.Count, err)
	}
	h, lost := &Histogram{h: in}, int64(0)
	// Of another program, or edited: adding all values one by one takes longer than decoding.
	if in.LowestTrackableValue() != 1 || in.HighestTrackableValue() != rangeOf(d.Unit) ||
		in.SignificantFigures() != histDigits {
		h = NewHistogram(d.Unit)
		lost = h.h.Merge(in)
	}
	if lost > 0 || h.h.TotalCount() != d.Count {
		return nil, fmt.Errorf("decode histogram: %d values in the data, %d announced",
			in.TotalCount(), d.Count)
	}
	h.n = d
	h.n.Data = "" // as large as the histogram
	return h, nil
}

// NewDistribution makes the numbers of a histogram, which may be nil.
func NewDistribution(u units.Unit, h *Histogram) Distribution {
	d := Distribution{Unit: u, Count: h.Count()}
	if d.Count == 0 {
		return d
	}
	n := h.n
	d.Mean = units.Ratio(n.Sum, d.Count)
	d.Min, d.Max, d.OutOfRange = &n.Min, &n.Max, n.OutOfRange
	at := func(p float64) *int64 {
		if v, _ := h.Percentile(p); Supported(p, d.Count) {
			return &v
		}
		return nil
	}
	d.P5, d.P50, d.P95 = at(0.05), at(0.5), at(0.95)
	d.P99, d.P999, d.P9999 = at(0.99), at(0.999), at(0.9999)
	return d
}

// PercentileMS is Percentile in milliseconds, nil when there are no values.
func (h *Histogram) PercentileMS(p float64) *float64 {
	if v, ok := h.Percentile(p); ok {
		return new(Milliseconds(v))
	}
	return nil
}

// Milliseconds turns nanoseconds into the unit of the Python benchmark's keys.
func Milliseconds(ns int64) float64 { return float64(ns) / float64(time.Millisecond) }
