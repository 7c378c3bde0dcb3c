package report

import (
	"cmp"
	"fmt"
	"strings"

	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
)

// harness has the CPU and memory that the benchmark itself used, and the shares behind the verdict. The
// verdict does not use an unknown share.
func harness(r *result.Result) (s Section) {
	h := r.Harness
	s.Title, s.Folded = "Harness", true
	parts := []string{units.Seconds.Text(float64(h.CPUNS)/1e9) + " CPU"}
	if r.Simulation == nil { // a simulation's own cost is unrelated to the run it predicts
		if share := h.Verdict.CPUShare; share != nil { // several hosts have no common number
			parts[0] += fmt.Sprintf(" (%s of %s cores)", percent(share), number(r.Limits.Cores))
		}
		if h.CPUNSPerByte != nil {
			parts = append(parts, number(h.CPUNSPerByte)+" ns of it per byte")
		}
	}
	memory := "peak memory unknown" // on systems that do not report it
	if h.PeakRSSBytes != nil {
		memory = "peak memory " + bytes(h.PeakRSSBytes)
	}
	s.line("harness", "%s, %s, %s (%s paused)", strings.Join(parts, ", "), memory,
		units.Plural(h.GCCount, "garbage collection"), ns(h.GCPauseNS))
	workers := "workers idle " + percent(h.Verdict.IdleShare)
	if share := h.Verdict.HarnessShare; share != nil {
		workers += fmt.Sprintf(", harness %s of busy time", percent(share))
	}
	cut := units.Plural(r.Requests.CancelledOperations, "operation") + " cut off at the end"
	if r.EndedBy == result.EndedBySignal { // the result did not wait for them
		cut = "operations that were in flight when it was interrupted are not counted"
	}
	s.line("", "%s; %s", workers, cut)
	return s
}

// kernel compares the kernel's counts with the application's: of the device, or of the connections
// to a store. Ratios far from one mean a cache, read-ahead, or another process on the device. A
// simulation has neither.
func kernel(r *result.Result) (s Section) {
	s.Title, s.Folded = "Kernel Counters", true
	if r.Network != nil {
		s.put("network", networkText(r))
		return s
	}
	w := r.DeviceCounters
	if r.Simulation != nil {
		return s
	}
	if w.ReadBytes == nil {
		s.line("kernel", "no byte counts: %s", cmp.Or(w.Reason, "unknown"))
		return s
	}
	s.line("kernel", "%s read %s (application %s, ratio %s), wrote %s (application %s, ratio "+
		"%s), busy %s", w.Device, bytes(w.ReadBytes), bytes(w.AppReadBytes), number(w.ReadRatio),
		bytes(w.WriteBytes), bytes(w.AppWriteBytes), number(w.WriteRatio), percent(w.BusyShare))
	if n := units.OrZero(w.DiscardIOs); n > 0 {
		s.line("", "%s of %s after deletions, mean %s, %s summed over parallel ones",
			units.Plural(n, "discard"), bytes(w.DiscardBytes), ns(units.OrZero(w.DiscardNS)/n),
			ns(w.DiscardNS))
	}
	return s
}
