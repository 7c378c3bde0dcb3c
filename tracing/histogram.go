package tracing

import (
	"fmt"
	"math"
)

// Histogram is one distribution that the kernel collected. Count and Sum are exact. Mean and the
// percentiles are null without samples; percentiles are interpolated within a bucket.
type Histogram struct {
	Unit    string   `json:"unit"` // us, kb (KiB), requests, gb (GiB)
	Count   int64    `json:"count"`
	Sum     float64  `json:"sum"`
	Mean    *float64 `json:"mean"`
	P50     *float64 `json:"p50"`
	P95     *float64 `json:"p95"`
	P99     *float64 `json:"p99"`
	Buckets []Bucket `json:"buckets"` // only buckets with samples, in ascending order
}

// Bucket counts the values in [Range[0], Range[1]), in the histogram's unit.
type Bucket struct {
	// The Python benchmark has the key range_us for every unit, so kvbench does, too.
	Range [2]float64 `json:"range_us"`
	Count int64      `json:"count"`
	// Value is the mean of the values in the bucket if the mean is known (request sizes), otherwise 0.
	// Mostly all requests of a bucket have one size: then Value is this size.
	Value float64 `json:"value,omitempty"`
}

// NewHistogram returns the distribution with these buckets, which are not empty and in ascending order. sum
// is the sum of all values. Without buckets the distribution is empty.
func NewHistogram(unit string, sum float64, buckets []Bucket) Histogram {
	h := Histogram{Unit: unit, Sum: sum, Buckets: buckets}
	for _, b := range buckets {
		h.Count += b.Count
	}
	if h.Count == 0 {
		return Histogram{}
	}
	h.Mean = new(h.Sum / float64(h.Count))
	h.P50, h.P95, h.P99 = new(h.Percentile(50)), new(h.Percentile(95)), new(h.Percentile(99))
	return h
}

// Check returns an error if the buckets do not match the count: a file may have been edited.
func (h Histogram) Check() error {
	var counted int64
	for i, b := range h.Buckets {
		if b.Count <= 0 || !(b.Range[0] < b.Range[1]) ||
			i > 0 && b.Range[0] < h.Buckets[i-1].Range[1] {
			return fmt.Errorf("bucket %d, [%g, %g) with %d samples, is empty or out of order", i,
				b.Range[0], b.Range[1], b.Count)
		}
		counted += b.Count
	}
	if counted != h.Count {
		return fmt.Errorf("the count is %d, but the buckets have %d samples", h.Count, counted)
	}
	return nil
}

// Percentile returns the value below which p percent of the samples lie. Without samples it is NaN.
func (h Histogram) Percentile(p float64) float64 {
	if h.Count == 0 {
		return math.NaN()
	}
	rank, seen := p/100*float64(h.Count), 0.0
	for _, b := range h.Buckets {
		n := float64(b.Count)
		switch {
		case seen+n < rank:
			seen += n
		case b.Value > 0:
			return b.Value
		case b.single():
			return b.Range[0]
		default:
			return b.Range[0] + (b.Range[1]-b.Range[0])*max(0, rank-seen)/n
		}
	}
	return h.Buckets[len(h.Buckets)-1].Range[1]
}

// single reports whether the bucket is for a single whole number, as the buckets of small depths are.
func (b Bucket) single() bool {
	return b.Range[1]-b.Range[0] == 1 && b.Range[0] == math.Trunc(b.Range[0])
}

// Middle returns the value that represents a bucket.
func (b Bucket) Middle() float64 {
	if b.single() {
		return b.Range[0]
	}
	return (b.Range[0] + b.Range[1]) / 2
}
