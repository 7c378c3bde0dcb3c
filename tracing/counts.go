package tracing

// directionCounts are the kernel's counters of one direction, summed over processors (struct direction of bpf/counters.h).
type directionCounts struct {
	requests, bytes, issued, requeued, errors          uint64
	d2cNS, q2dNS, q2dSamples                           uint64
	foreignRequests, foreignBytes, stale, unobservedNS uint64
	d2c, q2d, size, sizeBytes                          [buckets]uint64
	depth                                              [depthBuckets]uint64
	depthSum                                           uint64
	lba                                                [lbaBuckets]uint64
}

// otherCounts are those without a direction (struct other).
type otherCounts struct {
	flushes, flushNS, flushWaits, flushWaitNS uint64
	discards, discardBytes, discardNS, others uint64
	gaps, gapNS, merged, partial, unmatched   uint64
	orphaned, stale, full                     uint64
	flush, flushWait, discard, gap            [buckets]uint64
}

// callCounts are those of one kind of system call (struct calls of bpf/file.h).
type callCounts struct {
	calls, errors, bytes, ns, lost uint64
	time, size, sizeBytes          [buckets]uint64
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
		n += int64(c.calls[i].lost)
	}
	return n
}

func addInto(to []uint64, from []uint64) {
	for i, n := range from {
		to[i] += n
	}
}

// histograms makes the typed distributions.
func (c *counts) histograms(zoneGiB float64) Histograms {
	const us = 1000 // ns
	usSum := func(ns uint64) float64 { return float64(ns) / 1000 }
	r, w, o := &c.directions[dirRead], &c.directions[dirWrite], &c.other
	calls := func(k int) *Histogram {
		return newHistogram("us", c.calls[k].time[:], timeUnit, us, usSum(c.calls[k].ns))
	}
	return Histograms{
		D2CRead:       newHistogram("us", r.d2c[:], timeUnit, us, usSum(r.d2cNS)),
		D2CWrite:      newHistogram("us", w.d2c[:], timeUnit, us, usSum(w.d2cNS)),
		Q2DRead:       newHistogram("us", r.q2d[:], timeUnit, us, usSum(r.q2dNS)),
		Q2DWrite:      newHistogram("us", w.q2d[:], timeUnit, us, usSum(w.q2dNS)),
		SizeRead:      newSizes(r.size[:], r.sizeBytes[:]),
		SizeWrite:     newSizes(w.size[:], w.sizeBytes[:]),
		DepthRead:     newHistogram("requests", r.depth[:], 1, 1, float64(r.depthSum)),
		DepthWrite:    newHistogram("requests", w.depth[:], 1, 1, float64(w.depthSum)),
		LBARead:       newZones(r.lba[:], zoneGiB),
		LBAWrite:      newZones(w.lba[:], zoneGiB),
		Flush:         newHistogram("us", o.flush[:], timeUnit, us, usSum(o.flushNS)),
		FlushWait:     newHistogram("us", o.flushWait[:], timeUnit, us, usSum(o.flushWaitNS)),
		Discard:       newHistogram("us", o.discard[:], timeUnit, us, usSum(o.discardNS)),
		Idle:          newHistogram("us", o.gap[:], timeUnit, us, usSum(o.gapNS)),
		VFSRead:       calls(callRead),
		VFSWrite:      calls(callWrite),
		Fsync:         calls(callFsync),
		WriteToFsync:  calls(callWriteToFsync),
		FadviseToRead: calls(callFadviseToRead),
		VFSReadSize:   newSizes(c.calls[callRead].size[:], c.calls[callRead].sizeBytes[:]),
		VFSWriteSize:  newSizes(c.calls[callWrite].size[:], c.calls[callWrite].sizeBytes[:]),
	}
}

func (l *directionCounts) direction() Direction {
	return Direction{
		Requests: int64(l.requests), Bytes: int64(l.bytes), Errors: int64(l.errors),
		Issued: int64(l.issued), Requeued: int64(l.requeued), Stale: int64(l.stale),
		D2CNS: int64(l.d2cNS), Q2DNS: int64(l.q2dNS), Q2DSamples: int64(l.q2dSamples),
		ForeignRequests: int64(l.foreignRequests), ForeignBytes: int64(l.foreignBytes),
	}
}

// zoneSectors is the width of an LBA bucket: 10 GiB, doubled until the largest device fits.
func zoneSectors(ts []Disk) uint64 {
	const tenGiB = 10 << 30 / SectorSize
	width := uint64(tenGiB)
	for _, t := range ts {
		for t.Sectors() > width*lbaBuckets {
			width *= 2
		}
	}
	return width
}

// maxSegments is the smallest limit of the devices, 0 when unknown.
func maxSegments(ts []Disk) (least int64) {
	for _, t := range ts {
		if n := t.MaxSegments(); n > 0 && (least == 0 || n < least) {
			least = n
		}
	}
	return least
}
