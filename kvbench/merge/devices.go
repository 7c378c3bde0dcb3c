package merge

import (
	"slices"

	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
	"kvbench/kvbench/verdict"
)

// met reports whether the ranks began at one moment: a coordinator compared their clocks, and all
// opened a window.
func met(ranks []*result.Result) bool {
	return !slices.ContainsFunc(ranks, func(r *result.Result) bool {
		return r.ClockOffsetNS == nil || r.StartTime == ""
	})
}

// device identifies the storage device of a rank: devices are those of a kernel.
func device(r *result.Result) [2]string {
	return [2]string{r.Environment.KernelID(), r.DeviceCounters.Device}
}

// devices counts each device once. The kernel counts the bytes of all ranks that share a device:
// where they measured at the same time, the counters of the lowest rank are those of all; else none
// of them is of the trial.
func devices(out *result.Result, ranks []*result.Result) {
	var first []*result.DeviceCounters // of the lowest rank of each device
	seen, shared, known := map[[2]string]bool{}, false, true
	for _, r := range ranks {
		at := device(r)
		if at[1] == "" {
			known = false
		} else if shared = shared || seen[at]; !seen[at] {
			first = append(first, &r.DeviceCounters)
		}
		seen[at] = true
	}
	if !shared {
		return
	}
	w := &result.DeviceCounters{Device: out.DeviceCounters.Device,
		Reason: "ranks share the device, so that each of them has counted the bytes of all"}
	if known && met(ranks) {
		w = merged(first)
	}
	w.AppReadBytes, w.AppWriteBytes = out.DeviceCounters.AppReadBytes,
		out.DeviceCounters.AppWriteBytes
	out.DeviceCounters = *w
}

// judged is what limited the ranks together, as for one client, by the sums of what they did. Shares of a
// machine are those of the host on which the ranks used most of the cores: one busy host is enough,
// because its ranks are in the sums and slower than the storage let them be.
func judged(out *result.Result, ranks []*result.Result) result.Verdict {
	if len(ranks) == 1 {
		return ranks[0].Harness.Verdict
	}
	if slices.ContainsFunc(ranks, func(r *result.Result) bool { return r.Harness.Verdict.Kind == "" }) {
		return result.Verdict{} // of another program
	}
	// Containers of one machine need not share processors: they have names of their own.
	type host struct {
		used, largest, all float64 // cores
		workers            int
	}
	hosts, devices := map[[2]string]*host{}, map[[2]string]bool{}
	for _, r := range ranks {
		devices[device(r)] = true
		at := [2]string{r.Environment.Hostname, r.Environment.BootID}
		if hosts[at] == nil {
			hosts[at] = &host{}
		}
		h := hosts[at]
		h.used += units.OrZero(units.Ratio(r.Harness.CPUNS, r.WindowNS))
		h.largest, h.all = max(h.largest, r.Limits.Cores), h.all+r.Limits.Cores
		h.workers += r.Workload.Workers
	}
	one, share := *out, -1.0 // and copies of what changes
	for _, h := range hosts {
		cores := h.largest
		if h.used > cores { // each rank has a quota of its own
			cores = h.all
		}
		if h.workers > 0 {
			cores = min(cores, float64(h.workers))
		}
		if s := units.OrZero(units.Ratio(h.used, cores)); s > share ||
			s == share && cores > one.Limits.Cores {
			share, one.Limits.Cores = s, cores
			one.Harness.CPUNS = int64(h.used * float64(out.WindowNS))
		}
	}
	if ns := one.DeviceCounters.DiscardNS; ns != nil {
		one.DeviceCounters.DiscardNS = new(*ns / int64(len(devices)))
	}
	if s := one.Simulation; s != nil && s.Device != nil { // each rank has a device of its own
		of, d := *s, *s.Device
		d.Parallelism *= len(ranks)
		of.Device, one.Simulation = &d, &of
	}
	return verdict.Judge(&one)
}
