package verdict

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
)

func share(v float64) string  { return units.Share.Text(v) }
func number(v float64) string { return units.Number.Text(v) }
func bytes(n int64) string    { return units.Bytes.Text(n) }
func duration(ns float64) string {
	return units.Nanoseconds.Text(int64(ns))
}

// moved returns the text with which each reason begins: the rate of the run.
func (e *evidence) moved() string {
	if e.IO.Mode == result.IOMemory {
		var all int64
		for _, t := range e.Tiers {
			all += t.Read.Bytes + t.Write.Bytes
		}
		return fmt.Sprintf("the run had no storage tier and moved %s in memory",
			units.BytesPerSec.Text(ratio(float64(all)*1e9, float64(e.WindowNS))))
	}
	if e.storage.Level == "" {
		return "the run had no storage tier"
	}
	return fmt.Sprintf("the run moved %s with %s I/O requests in flight",
		units.BytesPerSec.Text(e.rate), number(e.inFlight))
}

func (e *evidence) loadReason() string {
	all := e.Harness.WorkerIdleNS + e.Harness.WorkerBusyNS
	text := fmt.Sprintf("workers had no request for %s of the time", share(ratio(e.Harness.WorkerIdleNS, all)))
	if n := e.Harness.Busy.ThinkingNS; n > 0 {
		text += fmt.Sprintf(" and waited for a GPU, or as long as one would compute, for %s",
			share(ratio(n, all)))
		if f := e.FirstToken; f != nil && f.GPUBusyShare != nil {
			text += fmt.Sprintf(" (the GPU was busy for %s of the window; -prefill-rate, -gpu)",
				units.Percent(f.GPUBusyShare))
		}
	}
	if e.Harness.Busy.ThinkingNS > 0 {
		text += fmt.Sprintf(": %s together", share(e.idle))
	}
	return fmt.Sprintf("%s (limit %s)", text, share(idleLimit))
}

func (e *evidence) sharedReason() string {
	d := &e.DeviceCounters
	if e.requests > e.shared {
		return fmt.Sprintf("the device completed %d I/O requests, %s times those of the run (limit %s): "+
			"another process used it", *d.ReadIOs+*d.WriteIOs, number(e.requests), number(sharedLimit))
	}
	moved := *d.ReadBytes + *d.WriteBytes
	return fmt.Sprintf("the device moved %s, %s times the %s of the run and its files' metadata (limit %s): "+
		"another process used it", bytes(moved), number(e.shared), bytes(int64(float64(moved)/e.shared)),
		number(sharedLimit))
}

// capacityReason names the tier for which workers waited the longest.
func (e *evidence) capacityReason() string {
	t, flag := e.ShortTier()
	return fmt.Sprintf("workers waited for capacity for %s of their busy time (limit %s), for %s of it in the %s "+
		"tier, until the entries to evict were no longer read or written (%s)", share(e.capacity),
		share(waitLimit), share(ratio(t.RoomNS, e.Harness.Busy.RoomNS)), t.Level, flag)
}

func (e *evidence) discardReason() string {
	var parts []string
	if e.deletion > 0 {
		parts = append(parts, fmt.Sprintf("deleting entries took %s of the workers' busy time",
			share(e.deletion)))
	}
	if e.discards > 0 {
		parts = append(parts, fmt.Sprintf("the device worked on discards of %s, of all processes, "+
			"for up to %s of the window", bytes(units.OrZero(e.DeviceCounters.DiscardBytes)),
			share(e.discards)))
	}
	text := fmt.Sprintf("%s (limit %s)", strings.Join(parts, ", "), share(waitLimit))
	if e.slowdown != nil {
		text += "; " + e.took()
	}
	return text
}

// cpuReason returns the reason of a CPU-limited run. If the workers' busy time in this process is the
// reason, the text lists its parts, the largest first.
func (e *evidence) cpuReason() string {
	cpu := e.cpuTime()
	switch {
	case units.OrZero(e.cpu) >= cpuLimit:
		return fmt.Sprintf("%s (limit %s)", cpu, share(cpuLimit))
	case e.process <= processLimit:
		return fmt.Sprintf("the files lie in memory (%s), where an I/O request is copying by this "+
			"process; %s", e.Filesystems()[0].Type, cpu)
	}
	return fmt.Sprintf("workers spent %s of their busy time in this process (limit %s): %s; %s",
		share(e.process), share(processLimit), e.parts(), cpu)
}

// cpuTime returns how much of the cores the process used.
func (e *evidence) cpuTime() string {
	if e.cpu == nil {
		return "the CPU time is unknown"
	}
	process, workers := "the process", units.Plural(e.Workload.Workers, "worker")
	if len(e.MergedRanks) > 1 {
		process, workers = "the ranks of a host", "their workers"
	}
	return fmt.Sprintf("%s used %s of the %s cores that %s can use", process, share(*e.cpu),
		number(e.cores()), workers)
}

// inMemoryTiers returns the verdict on a run without a storage tier: what took the largest part of the
// workers' busy time.
func (e *evidence) inMemoryTiers() (kind, reason string) {
	b := &e.Harness.Busy
	memory, waits := e.of(b.OtherTiersNS+b.ClearingNS), e.of(b.WriteLimitNS+b.WriterNS+b.BuffersNS)
	switch max(memory, waits, e.process-e.of(b.OtherTiersNS)) {
	case 0:
		return result.Undecided, "the times of its workers are missing"
	case memory:
		kind = result.MemoryLimited
	case waits:
		kind = result.LoadLimited
	default:
		kind = result.CPULimited
	}
	return kind, fmt.Sprintf("the largest parts of the workers' busy time are %s; %s", e.parts(), e.cpuTime())
}

// parts returns the parts of the workers' busy time outside the storage, the largest first.
func (e *evidence) parts() string {
	b := &e.Harness.Busy
	type part struct {
		name  string
		share float64
	}
	parts := []part{
		{"generating data", e.of(b.GenerationNS)}, {"copying and verifying", e.of(b.HostNS)},
		{"dispatching", e.of(b.DispatchNS)},
		{"handing I/O requests to threads and back", e.of(b.HandoverNS)},
		{"memory tiers", e.of(b.OtherTiersNS)}, {"outside of operations", e.rest},
	}
	if e.IO.Mode == result.IOMemory {
		parts = append(parts, part{"waiting for buffers", e.of(b.BuffersNS)},
			part{"demoting and deleting entries", e.of(b.ClearingNS)},
			part{"waiting for the write limit or another write (-max-concurrent-allocs)",
				e.of(b.WriteLimitNS + b.WriterNS)})
	}
	slices.SortStableFunc(parts, func(x, y part) int { return cmp.Compare(y.share, x.share) })
	var list []string
	for i, p := range parts {
		if i == 0 || p.share >= 0.05 {
			list = append(list, p.name+" "+share(p.share))
		}
	}
	return strings.Join(list, ", ")
}

// missing returns which number the last two rules lack, "" if they have all numbers.
func (e *evidence) missing() string {
	switch {
	case e.Simulation != nil && e.Simulation.Device == nil:
		return "the latency of an I/O request is missing: this simulated storage takes no time"
	case e.Simulation != nil:
		return ""
	case e.storage.Level == "":
		return "the latency of its I/O requests is missing"
	case e.storage.Read.InFlightNS+e.storage.Write.InFlightNS == 0:
		return "the latency of an I/O request is missing: the storage tier completed none"
	case !e.waiting():
		return ""
	case units.OrZero(e.slowdown) >= slowdownLeast:
		return ""
	case e.slowdown != nil:
		return e.took() + ", so the latency before the window was not the storage's alone"
	}
	why := cmp.Or(e.Harness.Unloaded.Reason, "it was not measured")
	return "the latency at queue depth 1 before the window is missing: " + why
}

// took returns a comparison of the latency with the unloaded latency.
func (e *evidence) took() string {
	if e.slowdown == nil {
		return "no I/O request waited for another one"
	}
	return fmt.Sprintf("an I/O request took %s, %s times the %s at queue depth 1 before the window",
		duration(e.latency), number(units.OrZero(e.slowdown)), duration(e.alone))
}

func (e *evidence) storageReason() string {
	if s := e.Simulation; s != nil {
		return fmt.Sprintf("the simulated device was busy for %s of the window and takes %d "+
			"I/O requests at a time", units.Percent(s.DeviceBusyShare), s.Device.Parallelism)
	}
	text := fmt.Sprintf("%s (limit %s), so I/O requests waited in the storage", e.took(),
		number(queueLimit))
	if busy := e.DeviceCounters.BusyShare; busy != nil {
		text += fmt.Sprintf("; the device was busy for %s of the window", units.Percent(busy))
	}
	return text
}

func (e *evidence) latencyReason(bound string) string {
	b := &e.Harness.Busy
	var why string
	switch bound {
	case result.BoundWriteLimit:
		why = fmt.Sprintf("the write limit (%d at a time, for which workers waited %s of their "+
			"busy time; -max-concurrent-allocs)", e.IO.MaxConcurrentAllocs,
			share(e.of(b.WriteLimitNS)))
	case result.BoundEngine:
		why = fmt.Sprintf("the inference engine's threads (I/O requests waited for one for %s of the "+
			"workers' busy time; -layout)", share(e.of(b.EngineNS)))
	case result.BoundBuffers:
		why = fmt.Sprintf("the memory for buffers (workers waited for one for %s of their busy time; "+
			"-chunk-size)", share(e.of(b.BuffersNS)))
	case result.BoundDepth:
		why = fmt.Sprintf("depth (each of %s had %d at most; -io-depth)",
			units.Plural(e.Workload.Workers, "worker"), e.IO.Depth)
	default:
		why = fmt.Sprintf("the number of workers (%d, each with %d at most; -workers)",
			e.Workload.Workers, e.IO.Depth)
	}
	if s := e.Simulation; s != nil {
		return fmt.Sprintf("the simulated device was busy for %s of the window; more in flight is "+
			"bounded by %s", units.Percent(s.DeviceBusyShare), why)
	}
	return fmt.Sprintf("%s; more in flight is bounded by %s, and -bench Knee shows what it would "+
		"move", e.took(), why)
}
