package collector

import (
	"kvbench/tracing"
	"kvbench/tracing/host"
)

// The three kinds of counters are laid out as in bpf/counters.h and bpf/file.h, one 64-bit word
// after the other: they are read from the kernel as they are. A test compares them with what the C
// compiler made.

// directionCounts are the kernel's counters of one direction, summed over processors.
type directionCounts struct {
	Requests, Bytes, Issued, Requeued, Errors          int64
	D2cNs, Q2dNs, Q2dSamples, DepthSum                 int64
	ForeignRequests, ForeignBytes, Stale, UnobservedNs int64
	D2c, Q2d, Size, SizeBytes                          [buckets]uint64
	Depth                                              [depthBuckets]uint64
	Lba                                                [lbaBuckets]uint64
}

// otherCounts are those without a direction.
type otherCounts struct {
	Flushes, FlushNs, FlushWaits, FlushWaitNs int64
	Discards, DiscardBytes, DiscardNs, Others int64
	Gaps, GapNs, Merged, Partial, Unmatched   int64
	Orphaned, Stale, Full                     int64
	Flush, FlushWait, Discard, Gap            [buckets]uint64
}

// callCounts are those of one kind of system call.
type callCounts struct {
	Calls, Errors, Bytes, Ns, Lost int64
	Time, Size, SizeBytes          [buckets]uint64
}

// counts is everything that the programs counted in one window.
type counts struct {
	directions [2]directionCounts
	other      otherCounts
	calls      [callKinds]callCounts
}

// The kinds of system calls, as in bpf/file.h.
const (
	callRead = iota
	callWrite
	callFsync
	callWriteToFsync
	callFadviseToRead
	callKinds
)

const (
	dirRead  = 0
	dirWrite = 1
)

// lostCalls are those that were begun, but could not be followed to their end.
func (c *counts) lostCalls() (n int64) {
	for i := range c.calls {
		n += c.calls[i].Lost
	}
	return n
}

// histograms makes the typed distributions.
func (c *counts) histograms(zoneGiB float64) tracing.Histograms {
	r, w, o := &c.directions[dirRead], &c.directions[dirWrite], &c.other
	depths := func(d *directionCounts) tracing.Histogram {
		return newHistogram("requests", d.Depth[:], 1, 1, float64(d.DepthSum))
	}
	calls := func(k int) tracing.Histogram { return newTimes(&c.calls[k].Time, c.calls[k].Ns) }
	callSizes := func(k int) tracing.Histogram {
		return newSizes(&c.calls[k].Size, &c.calls[k].SizeBytes)
	}
	return tracing.Histograms{
		D2CRead: newTimes(&r.D2c, r.D2cNs), D2CWrite: newTimes(&w.D2c, w.D2cNs),
		Q2DRead: newTimes(&r.Q2d, r.Q2dNs), Q2DWrite: newTimes(&w.Q2d, w.Q2dNs),
		SizeRead: newSizes(&r.Size, &r.SizeBytes), SizeWrite: newSizes(&w.Size, &w.SizeBytes),
		DepthRead: depths(r), DepthWrite: depths(w),
		LBARead: newZones(&r.Lba, zoneGiB), LBAWrite: newZones(&w.Lba, zoneGiB),
		Flush: newTimes(&o.Flush, o.FlushNs), FlushWait: newTimes(&o.FlushWait, o.FlushWaitNs),
		Discard: newTimes(&o.Discard, o.DiscardNs), Idle: newTimes(&o.Gap, o.GapNs),
		VFSRead: calls(callRead), VFSReadSize: callSizes(callRead),
		VFSWrite: calls(callWrite), VFSWriteSize: callSizes(callWrite), Fsync: calls(callFsync),
		WriteToFsync: calls(callWriteToFsync), FadviseToRead: calls(callFadviseToRead),
	}
}

// direction has what needs no more than another name; the rest is capture.go's.
func (d *directionCounts) direction() tracing.Direction {
	return tracing.Direction{
		Requests: d.Requests, Bytes: d.Bytes, Errors: d.Errors,
		Issued: d.Issued, Requeued: d.Requeued, Stale: d.Stale,
		D2CNS: d.D2cNs, Q2DNS: d.Q2dNs, Q2DSamples: d.Q2dSamples,
		ForeignRequests: d.ForeignRequests, ForeignBytes: d.ForeignBytes,
	}
}

// zoneSectors is the width of an LBA bucket: 10 GiB, doubled until the largest device fits.
func zoneSectors(ts []host.Disk) uint64 {
	const tenGiB = 10 << 30 / host.SectorSize
	width := uint64(tenGiB)
	for _, t := range ts {
		for t.Sectors() > width*lbaBuckets {
			width *= 2
		}
	}
	return width
}

// maxSegments is the smallest limit of the devices, 0 when unknown.
func maxSegments(ts []host.Disk) (least int64) {
	for _, t := range ts {
		if n := t.MaxSegments(); n > 0 && (least == 0 || n < least) {
			least = n
		}
	}
	return least
}
