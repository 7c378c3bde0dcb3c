package collector

import (
	"kvbench/tracing"
	"kvbench/tracing/host"
)

// The kernel's histograms are log-linear with 16 buckets per power of two, so a bucket is at most 1/16
// wide. The constants are as in bpf/histogram.h.
const (
	subBits      = 4
	buckets      = 512
	depthBuckets = 256
	lbaBuckets   = 1024

	timeUnit = 16  // ns
	sizeUnit = 512 // bytes
)

// bucketRange returns the range of bucket i: [low, high).
func bucketRange(i int) (low, high uint64) {
	if i < 1<<subBits {
		return uint64(i), uint64(i) + 1
	}
	shift := i>>subBits - 1
	low = uint64(1<<subBits+i&(1<<subBits-1)) << shift
	return low, low + 1<<shift
}

// distribution makes a Histogram of the kernel's counts; bucket returns bucket i without its count.
func distribution(unit string, sum float64, counts []uint64,
	bucket func(i int) tracing.Bucket) tracing.Histogram {
	var in []tracing.Bucket
	for i, n := range counts {
		if n > 0 {
			b := bucket(i)
			b.Count = int64(n)
			in = append(in, b)
		}
	}
	return tracing.NewHistogram(unit, sum, in)
}

// newHistogram makes a Histogram of log-linear counts. step is the programs' unit and per the
// result's, both in ns, bytes or requests.
func newHistogram(unit string, counts []uint64, step uint64, per, sum float64) tracing.Histogram {
	return distribution(unit, sum, counts, func(i int) tracing.Bucket {
		return tracing.Bucket{Range: rangeIn(step, per, i)}
	})
}

// rangeIn returns the range of bucket i in a unit.
func rangeIn(step uint64, per float64, i int) [2]float64 {
	low, high := bucketRange(i)
	return [2]float64{float64(low*step) / per, float64(high*step) / per}
}

// newTimes makes a histogram of times in µs.
func newTimes(counts *[buckets]uint64, ns int64) tracing.Histogram {
	const us = 1000 // ns
	return newHistogram("us", counts[:], timeUnit, us, float64(ns)/us)
}

// newSizes makes a histogram of request sizes in KiB. Its buckets have the mean of their real sizes.
func newSizes(counts, bytes *[buckets]uint64) tracing.Histogram {
	const kib = 1024
	sum := uint64(0)
	for _, n := range bytes {
		sum += n
	}
	return distribution("kb", float64(sum)/kib, counts[:], func(i int) tracing.Bucket {
		return tracing.Bucket{Range: rangeIn(sizeUnit, kib, i),
			Value: float64(bytes[i]) / float64(counts[i]) / kib}
	})
}

// newZones makes a linear histogram of the device's addresses. The last bucket includes all addresses
// beyond it.
func newZones(counts *[lbaBuckets]uint64, widthGiB float64) tracing.Histogram {
	sum := 0.0
	for i, n := range counts {
		sum += float64(n) * (float64(i) + 0.5) * widthGiB
	}
	return distribution("gb", sum, counts[:], func(i int) tracing.Bucket {
		low := float64(i) * widthGiB
		return tracing.Bucket{Range: [2]float64{low, low + widthGiB}}
	})
}

// zoneSectors returns the width of an LBA bucket: the smallest power of two, at least 1 MiB, with
// which the buckets cover the largest device. It is 16 GiB if the devices are unknown.
func zoneSectors(ts []host.Disk) uint64 {
	const mib, unknown = 1 << 20 / host.SectorSize, 16 << 30 / host.SectorSize
	if len(ts) == 0 {
		return unknown
	}
	width := uint64(mib)
	for _, t := range ts {
		for uint64(t.Number("size")) > width*lbaBuckets {
			width *= 2
		}
	}
	return width
}
