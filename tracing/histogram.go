package tracing

import (
	"math"
	"math/bits"
)

// The kernel's histograms are log-linear: 16 buckets per power of two, so that a bucket is at most 1/16 wide. The numbers
// are those of bpf/histogram.h.
const (
	subBits      = 4
	buckets      = 512
	depthBuckets = 256
	lbaBuckets   = 1024

	timeUnit = 16  // ns
	sizeUnit = 512 // bytes
)

// Histogram is one distribution that the kernel collected. Count and Sum are exact; values lie somewhere in their
// bucket. Percentiles are interpolated within it, and null without samples.
type Histogram struct {
	Unit    string   `json:"unit"` // us, kb (KiB), requests, gb (GiB)
	Count   int64    `json:"count"`
	Sum     float64  `json:"sum"`
	Mean    *float64 `json:"mean"`
	P50     *float64 `json:"p50"`
	P95     *float64 `json:"p95"`
	P99     *float64 `json:"p99"`
	Buckets []Bucket `json:"buckets"` // only those with samples, in order
}

// Bucket counts the values in [Range[0], Range[1]), in the histogram's unit. The key is that of the Python benchmark, which
// uses it for every unit.
type Bucket struct {
	Range [2]float64 `json:"range_us"`
	Count int64      `json:"count"`
	// Value is the mean of the values in the bucket where that is known (request sizes), otherwise 0. Requests of one
	// bucket mostly have one size, and then this is it.
	Value float64 `json:"value,omitempty"`
}

// bucketOf mirrors bucket_of in bpf/histogram.h.
func bucketOf(v uint64, n int) int {
	if v < 1<<subBits {
		return int(v)
	}
	e := bits.Len64(v) - 1
	i := (e-subBits+1)<<subBits + int(v>>(e-subBits))&(1<<subBits-1)
	return min(i, n-1)
}

// bucketRange returns what bucket i holds: [low, high).
func bucketRange(i int) (low, high uint64) {
	if i < 1<<subBits {
		return uint64(i), uint64(i) + 1
	}
	shift := i>>subBits - 1
	low = uint64(1<<subBits+i&(1<<subBits-1)) << shift
	return low, low + 1<<shift
}

// newHistogram turns the kernel's counts into a Histogram: they are in steps of which per make one of the histogram's unit.
func newHistogram(unit string, counts []uint64, step uint64, per, sum float64) *Histogram {
	h := &Histogram{Unit: unit, Sum: sum}
	for i, n := range counts {
		if n == 0 {
			continue
		}
		low, high := bucketRange(i)
		h.Count += int64(n)
		h.Buckets = append(h.Buckets, Bucket{Range: [2]float64{float64(low*step) / per, float64(high*step) / per}, Count: int64(n)})
	}
	return h.finish()
}

// newSizes is a histogram of request sizes in KiB whose buckets know their real size.
func newSizes(counts, bytes []uint64) *Histogram {
	h := &Histogram{Unit: "kb"}
	for i, n := range counts {
		if n == 0 {
			continue
		}
		low, high := bucketRange(i)
		h.Count += int64(n)
		h.Sum += float64(bytes[i]) / 1024
		h.Buckets = append(h.Buckets, Bucket{
			Range: [2]float64{float64(low) * sizeUnit / 1024, float64(high) * sizeUnit / 1024},
			Count: int64(n), Value: float64(bytes[i]) / float64(n) / 1024,
		})
	}
	return h.finish()
}

// newZones is a linear histogram over the device's addresses; the last bucket holds what lies beyond it.
func newZones(counts []uint64, widthGiB float64) *Histogram {
	h := &Histogram{Unit: "gb"}
	for i, n := range counts {
		if n == 0 {
			continue
		}
		low := float64(i) * widthGiB
		h.Count += int64(n)
		h.Sum += float64(n) * (low + widthGiB/2)
		h.Buckets = append(h.Buckets, Bucket{Range: [2]float64{low, low + widthGiB}, Count: int64(n)})
	}
	return h.finish()
}

// finish fills in what follows from buckets and sum; a histogram without samples is nil.
func (h *Histogram) finish() *Histogram {
	if h.Count == 0 {
		return nil
	}
	mean := h.Sum / float64(h.Count)
	h.Mean = &mean
	for p, to := range map[float64]**float64{50: &h.P50, 95: &h.P95, 99: &h.P99} {
		v := h.Percentile(p)
		*to = &v
	}
	return h
}

// Percentile returns the value below which p percent of the samples lie. Without samples it is NaN; h may be nil.
func (h *Histogram) Percentile(p float64) float64 {
	if h == nil || h.Count == 0 {
		return math.NaN()
	}
	rank, seen := p/100*float64(h.Count), 0.0
	for _, b := range h.Buckets {
		if n := float64(b.Count); seen+n >= rank {
			if b.Value > 0 {
				return b.Value
			}
			if b.single() {
				return b.Range[0]
			}
			return b.Range[0] + (b.Range[1]-b.Range[0])*max(0, rank-seen)/n
		} else {
			seen += n
		}
	}
	return h.Buckets[len(h.Buckets)-1].Range[1]
}

// single says that the bucket holds one whole number, as those of small depths do.
func (b Bucket) single() bool {
	return b.Range[1]-b.Range[0] == 1 && b.Range[0] == math.Trunc(b.Range[0])
}

// samples is Count of a histogram that may be nil.
func (h *Histogram) samples() int64 {
	if h == nil {
		return 0
	}
	return h.Count
}
