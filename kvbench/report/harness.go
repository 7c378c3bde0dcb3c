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
			parts[0] += fmt.Sprintf(" (%s of %s cores)", percent(share),
				number(cmp.Or(h.Verdict.CPUCores, r.Limits.Cores)))
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

// cards has the cards of the gpu tier, and NVML's counts next to those of the tier. PCIe also carries
// requests and acknowledgements, so that its bytes are some more.
func cards(r *result.Result) (s Section) {
	s.Title, s.Folded = "Cards", true
	var received, sent *int64
	for _, c := range r.Cards {
		text := fmt.Sprintf("%s at %s, driver %s, CUDA %s", c.Name, c.Address, cmp.Or(c.Driver, "unknown"),
			c.CUDA)
		if c.PCIeWidth > 0 {
			text += fmt.Sprintf(", PCIe %d × %d", c.PCIeGeneration, c.PCIeWidth)
		}
		s.line("card", "%s; a plain copy reads %s and writes %s", text,
			units.BytesPerSec.Text(c.PlainReadBytesPerSecond),
			units.BytesPerSec.Text(c.PlainWriteBytesPerSecond))
		if c.NVMLReason != "" {
			s.line("", "no counts of the driver: %s", c.NVMLReason)
			continue
		}
		s.line("", "%s of %s in use at the end (NVML)", bytes(c.UsedBytes), bytes(c.MemoryBytes))
		received, sent = plus(received, c.ReceivedBytes), plus(sent, c.SentBytes)
	}
	for _, t := range r.Tiers {
		if t.Level == "gpu" && sent != nil && received != nil {
			s.line("", "PCIe: sent %s (gpu tier read %s, ratio %s), received %s (gpu tier written %s, "+
				"ratio %s)", bytes(sent), bytes(t.Read.Bytes), number(units.Ratio(*sent, t.Read.Bytes)), bytes(received),
				bytes(t.Write.Bytes), number(units.Ratio(*received, t.Write.Bytes)))
		}
	}
	return s
}

// plus adds counts of which each may be unknown.
func plus(sum, n *int64) *int64 {
	if n == nil {
		return sum
	}
	return new(units.OrZero(sum) + *n)
}
