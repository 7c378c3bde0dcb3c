package collector

import (
	"math/bits"

	"kvbench/tracing"
)

// The kernel's histograms are log-linear: 16 buckets per power of two, so that a bucket is at most
// 1/16 wide. The numbers are those of bpf/histogram.h.
const (
	subBits      = 4
	buckets      = 512
	depthBuckets = 256
	lbaBuckets   = 1024

	timeUnit = 16  // ns
	sizeUnit = 512 // bytes
)

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

// newHistogram turns the kernel's counts into a Histogram: they are in steps of which per make one
// of the histogram's unit.
func newHistogram(unit string, counts []uint64, step uint64, per, sum float64) *tracing.Histogram {
	var in []tracing.Bucket
	for i, n := range counts {
		if n == 0 {
			continue
		}
		low, high := bucketRange(i)
		between := [2]float64{float64(low*step) / per, float64(high*step) / per}
		in = append(in, tracing.Bucket{Range: between, Count: int64(n)})
	}
	return tracing.NewHistogram(unit, sum, in)
}

// newSizes is a histogram of request sizes in KiB whose buckets know their real size.
func newSizes(counts, bytes []uint64) *tracing.Histogram {
	var in []tracing.Bucket
	sum := 0.0
	for i, n := range counts {
		if n == 0 {
			continue
		}
		low, high := bucketRange(i)
		sum += float64(bytes[i]) / 1024
		in = append(in, tracing.Bucket{
			Range: [2]float64{float64(low) * sizeUnit / 1024, float64(high) * sizeUnit / 1024},
			Count: int64(n), Value: float64(bytes[i]) / float64(n) / 1024,
		})
	}
	return tracing.NewHistogram("kb", sum, in)
}

// newZones is a linear histogram over the device's addresses; the last bucket holds what lies
// beyond it.
func newZones(counts []uint64, widthGiB float64) *tracing.Histogram {
	var in []tracing.Bucket
	sum := 0.0
	for i, n := range counts {
		if n == 0 {
			continue
		}
		low := float64(i) * widthGiB
		sum += float64(n) * (low + widthGiB/2)
		in = append(in, tracing.Bucket{Range: [2]float64{low, low + widthGiB}, Count: int64(n)})
	}
	return tracing.NewHistogram("gb", sum, in)
}
