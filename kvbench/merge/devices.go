package merge

import (
	"slices"
	"time"

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

// covered is the least share of the time from the first rank's start to the last rank's end in which
// the counters of one rank stand for a device. With less, a cache or another process would seem to
// have moved the rest of the bytes.
const covered = 0.98

// covering returns the rank with the longest window, nil if that window does not cover the windows of
// all ranks.
func covering(ranks []*result.Result) *result.Result {
	var first, last time.Time
	longest := ranks[0]
	for _, r := range ranks {
		start, _ := r.Coordinated(r.StartTime) // met checks it
		end := start.Add(time.Duration(r.WindowNS))
		if first.IsZero() || start.Before(first) {
			first = start
		}
		if end.After(last) {
			last = end
		}
		if r.WindowNS > longest.WindowNS {
			longest = r
		}
	}
	if len(ranks) > 1 && float64(longest.WindowNS) < covered*float64(last.Sub(first)) {
		return nil
	}
	return longest
}

// devices counts each device once. A device's counters count the bytes of all ranks that share the
// device. If the ranks measured at the same time, the counters of the rank whose window covers all are
// the device's total. Otherwise the merged counters are unknown, with a reason.
func devices(out *result.Result, ranks []*result.Result) {
	var order [][2]string
	sharing := map[[2]string][]*result.Result{} // by device
	for _, r := range ranks {
		at := device(r)
		if sharing[at] == nil {
			order = append(order, at)
		}
		sharing[at] = append(sharing[at], r)
	}
	known, shared := met(ranks), false
	var totals []*result.DeviceCounters // by device
	w := &result.DeviceCounters{Device: out.DeviceCounters.Device,
		Reason: "ranks share the device, so that each of them has counted the bytes of all"}
	for _, at := range order {
		if at[1] == "" {
			known = false
			continue
		}
		shared = shared || len(sharing[at]) > 1
		if r := covering(sharing[at]); r != nil {
			totals = append(totals, &r.DeviceCounters)
		} else if known {
			known = false
			w.Reason = "ranks share the device, and no rank's window covers the windows of all"
		}
	}
	if !shared {
		return
	}
	if known {
		w = merged(totals)
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
		h.used += units.OrZero(units.Ratio(r.Harness.CPUNS, r.MeasuredNS()))
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
			one.Harness.CPUNS = int64(h.used * float64(out.MeasuredNS()))
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
