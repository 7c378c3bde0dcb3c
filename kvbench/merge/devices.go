package merge

import (
	"slices"

	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
	"kvbench/kvbench/verdict"
)

// met reports whether the ranks started at the same time: the coordinator compared the clocks of
// all ranks, and all opened a window.
func met(ranks []*result.Result) bool {
	return !slices.ContainsFunc(ranks, func(r *result.Result) bool {
		return r.ClockOffsetNS == nil || r.StartTime == ""
	})
}

// device returns the identity of a rank's storage device: the kernel and the device's name.
func device(r *result.Result) [2]string {
	return [2]string{r.Environment.KernelID(), r.DeviceCounters.Device}
}

// devices counts each device once. A device's counters count the bytes of all ranks that share the
// device. If the ranks measured at the same time, the counters of the device's lowest rank are its
// total. Otherwise the merged counters are unknown, with a reason.
func devices(out *result.Result, ranks []*result.Result) {
	var first []*result.DeviceCounters // by device, from its lowest rank
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

// judged returns the verdict on the merged result. The CPU share is the largest of all hosts,
// because one host at its CPU limit lowers the sums.
func judged(out *result.Result, ranks []*result.Result) result.Verdict {
	if len(ranks) == 1 {
		return ranks[0].Harness.Verdict
	}
	if slices.ContainsFunc(ranks, func(r *result.Result) bool { return r.Harness.Verdict.Kind == "" }) {
		return result.Verdict{} // a file that another program made or changed
	}
	// Each container counts as a host, because containers of one machine may have separate CPUs.
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
	one, share := *out, -1.0 // a copy, as is each structure that changes
	for _, h := range hosts {
		cores := h.largest
		if h.used > cores { // each rank has its own CPU quota
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
	if s := one.Simulation; s != nil && s.Device != nil { // each rank simulates its own device
		of, d := *s, *s.Device
		d.Parallelism *= len(ranks)
		of.Device, one.Simulation = &d, &of
	}
	return verdict.Judge(&one)
}
