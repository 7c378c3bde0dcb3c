package collector

import (
	"cmp"
	"slices"
	"strings"
	"unsafe"

	"kvbench/tracing"
	"kvbench/tracing/host"
)

// The three kinds of counters have the layout of bpf/counters.h and bpf/file.h, one 64-bit word after
// the other, because they are copied from the kernel. A test compares the layout with the compiled
// programs.

// directionCounts are the kernel's counters of one direction, summed over processors.
type directionCounts struct {
	Requests, Bytes, Issued, Requeued, Errors int64
	D2cNs, Q2dNs, Q2dSamples, DepthSum        int64
	ForeignRequests, ForeignBytes             int64
	KernelRequests, KernelBytes               int64
	BackRequests, BackBytes, Sequential       int64
	Stale, UnobservedNs                       int64
	D2c, Q2d, Size, SizeBytes                 [buckets]uint64
	Depth                                     [depthBuckets]uint64
	Lba                                       [lbaBuckets]uint64
}

// otherCounts are the counters without a direction.
type otherCounts struct {
	Flushes, FlushNs, FlushWaits, FlushWaitNs int64
	OwnFlushWaits, KernelFlushWaits           int64
	Discards, DiscardBytes, DiscardNs, Others int64
	Gaps, GapNs, Merged, Partial, Unmatched   int64
	Orphaned, Stale, Full                     int64
	Flush, FlushWait, Discard, Gap            [buckets]uint64
}

// callCounts are the counters of one kind of system call.
type callCounts struct {
	Calls, Errors, Bytes, Ns, Lost int64
	Time, Size, SizeBytes          [buckets]uint64
}

// counts is all counters of one window.
type counts struct {
	directions [2]directionCounts
	other      otherCounts
	calls      [callKinds]callCounts
	owners     map[uint32]ownerCounts // by process, 0 = the kernel; nil unless asked for
	unwatched  int64                  // processes that did not fit into the watched set
}

// ownerCounts are the kernel's counters of one process, laid out as in bpf/owner.h.
type ownerCounts struct {
	Comm                    [commLength]byte
	Requests, Bytes         [2]int64
	BackRequests, BackBytes int64
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

// lostCalls returns how many calls began but could not be followed to their end.
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

// direction returns the counters that only need another name. capture.go computes the rest.
func (d *directionCounts) direction() tracing.Direction {
	return tracing.Direction{
		Requests: d.Requests, Bytes: d.Bytes, Errors: d.Errors,
		Issued: d.Issued, Requeued: d.Requeued, Stale: d.Stale,
		D2CNS: d.D2cNs, Q2DNS: d.Q2dNs, Q2DSamples: d.Q2dSamples,
		ForeignRequests: d.ForeignRequests, ForeignBytes: d.ForeignBytes,
		KernelRequests: d.KernelRequests, KernelBytes: d.KernelBytes,
		WrittenBack: d.BackRequests, WrittenBackBytes: d.BackBytes, Sequential: d.Sequential,
	}
}

// since subtracts earlier counts.
func (c *counts) since(before *counts) {
	less := func(now, old []uint64) {
		for at, n := range old {
			now[at] -= n
		}
	}
	less(words(&c.directions), words(&before.directions))
	less(words(&c.other), words(&before.other))
	less(words(&c.calls), words(&before.calls))
	c.unwatched -= before.unwatched
	for pid, n := range c.owners {
		old := before.owners[pid]
		old.Comm = [commLength]byte{} // names are no counts
		less(words(&n), words(&old))
		c.owners[pid] = n
	}
}

// list makes the owners of a window, the most bytes first.
func (c *counts) list() (out []tracing.Owner) {
	for pid, n := range c.owners {
		if n.Requests[dirRead]+n.Requests[dirWrite] == 0 {
			continue
		}
		name, _, _ := strings.Cut(string(n.Comm[:]), "\x00")
		if pid == 0 {
			name = "kernel"
		}
		out = append(out, tracing.Owner{PID: int64(pid), Name: name,
			Reads: n.Requests[dirRead], ReadBytes: n.Bytes[dirRead],
			Writes: n.Requests[dirWrite], WriteBytes: n.Bytes[dirWrite],
			WrittenBack: n.BackRequests, WrittenBackBytes: n.BackBytes})
	}
	slices.SortFunc(out, func(a, b tracing.Owner) int {
		return cmp.Or(cmp.Compare(b.ReadBytes+b.WriteBytes, a.ReadBytes+a.WriteBytes),
			cmp.Compare(a.PID, b.PID))
	})
	return out
}

// words returns a structure that consists of 64-bit words as a slice of them.
func words[T any](v *T) []uint64 {
	return unsafe.Slice((*uint64)(unsafe.Pointer(v)), unsafe.Sizeof(*v)/8)
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

// liveRoom is how many requests can be followed at once: as many as 64 hardware queues of an NVMe drive hold.
// The kernel takes some 130 bytes for each.
const liveRoom = 1 << 16

// maxSegments returns the smallest limit of the devices, 0 if unknown.
func maxSegments(ts []host.Disk) (least int64) {
	for _, t := range ts {
		if n := t.Number("queue/max_segments"); n > 0 && (least == 0 || n < least) {
			least = n
		}
	}
	return least
}
