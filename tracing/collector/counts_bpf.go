//go:build linux && (amd64 || arm64)

package collector

import (
	"cmp"
	"slices"
	"strings"
	"unsafe"

	"kvbench/tracing"
	"kvbench/tracing/bpf"
)

// counts is all counters of one window, summed over processors. They consist of 64-bit words, because they
// are summed and subtracted as such.
type counts struct {
	directions [2]bpf.TraceDirection
	other      bpf.TraceOther
	calls      [callKinds]bpf.TraceCalls
	owners     map[uint32]bpf.TraceOwner // by process, 0 = the kernel; nil unless requested
	unwatched  int64                     // processes that did not fit into the watched set
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

// fill puts the counters into a trace. zoneGiB is the width of a bucket of positions.
func (c *counts) fill(t *tracing.Trace, zoneGiB float64) {
	r, w, o := &c.directions[dirRead], &c.directions[dirWrite], &c.other
	depths := func(d *bpf.TraceDirection) tracing.Histogram {
		return newHistogram("requests", d.Depth[:], 1, 1, float64(d.DepthSum))
	}
	calls := func(k int) tracing.Histogram { return newTimes(&c.calls[k].Time, c.calls[k].Ns) }
	callSizes := func(k int) tracing.Histogram {
		return newSizes(&c.calls[k].Size, &c.calls[k].SizeBytes)
	}
	t.Histograms = tracing.Histograms{
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
	p := &t.Capture
	p.Read, p.Write = direction(r), direction(w)
	p.Read.DepthExcess = float64(r.Miscounted) / max(1, float64(r.DepthSum))
	p.Write.DepthExcess = float64(w.Miscounted) / max(1, float64(w.DepthSum))
	p.Flushes, p.FlushWaits = o.Flushes, o.FlushWaits
	p.OwnFlushWaits, p.KernelFlushWaits = o.OwnFlushWaits, o.KernelFlushWaits
	p.Owners = c.list()
	p.Discards, p.DiscardBytes, p.Others = o.Discards, o.DiscardBytes, o.Others
	p.Gaps, p.IdleNS, p.UnobservedNS = o.Gaps, o.GapNs, r.UnobservedNs+w.UnobservedNs
	p.Losses = tracing.Losses{Unmatched: o.Unmatched, Orphaned: o.Orphaned, Stale: o.Stale,
		Full: o.Full, Processes: c.unwatched, Partial: o.Partial, Merged: o.Merged}
	for i := range c.calls {
		p.Losses.Calls += c.calls[i].Lost
	}
}

// direction returns the counters that only need another name. capture.go computes the rest.
func direction(d *bpf.TraceDirection) tracing.Direction {
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
