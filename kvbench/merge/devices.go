package merge

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"kvbench/kvbench/result"
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
	return [2]string{r.Environment.KernelID(), r.DeviceWitness.Device}
}

// devices counts each device once. The kernel counts the bytes of all ranks that share a device:
// where they measured at the same time, the counters of the lowest rank are those of all; else none
// of them is of the trial.
func devices(out *result.Result, ranks []*result.Result) {
	var first []*result.Witness // of the lowest rank of each device
	seen, shared, known := map[[2]string]bool{}, false, true
	for _, r := range ranks {
		at := device(r)
		if at[1] == "" {
			known = false
		} else if shared = shared || seen[at]; !seen[at] {
			first = append(first, &r.DeviceWitness)
		}
		seen[at] = true
	}
	if !shared {
		return
	}
	w := &result.Witness{Device: out.DeviceWitness.Device,
		Reason: "ranks share the device, so that each of them has counted the bytes of all"}
	if known && met(ranks) {
		w = merged(first)
	}
	w.AppReadBytes, w.AppWriteBytes = out.DeviceWitness.AppReadBytes,
		out.DeviceWitness.AppWriteBytes
	out.DeviceWitness = *w
}

// busyHost is the share of a host's cores from which on the clients there are the limit.
const busyHost = 0.85

// verdict reports what bounded the clients together: their host, where the clients of one have used
// up its cores, which none of them may have noticed; else what most of them report.
func verdict(out *result.Result, ranks []*result.Result) result.Verdict {
	v := out.Harness.Verdict
	if len(ranks) == 1 || v.Kind == "" && ranks[0].Harness.Verdict.Kind == "" {
		return v // of one client, or of another program
	}
	// A host is a name of a kernel: containers of one machine need not share processors. Its cores
	// are the largest quota of any client, as if the clients had it together. Clients with a quota
	// each would be taken for busier than they are, and the reason shows the numbers.
	type host struct {
		at         [2]string
		cpu, cores float64
		ranks      int
	}
	hosts, kinds := map[[2]string]*host{}, map[string]int{}
	for _, r := range ranks {
		kinds[r.Harness.Verdict.Kind]++
		at := [2]string{r.Environment.Hostname, r.Environment.BootID}
		h := hosts[at]
		if h == nil {
			h = &host{at: at}
			hosts[at] = h
		}
		if r.WindowNS > 0 {
			h.cpu += float64(r.Harness.CPUNS) / float64(r.WindowNS)
		}
		h.cores, h.ranks = max(h.cores, r.Limits.Cores), h.ranks+1
	}
	// The most frequent first; equals by name, so that the same results give the same words.
	order := slices.SortedFunc(maps.Keys(kinds), func(a, b string) int {
		return cmp.Or(kinds[b]-kinds[a], strings.Compare(a, b))
	})
	var counts []string
	for _, kind := range order {
		counts = append(counts, fmt.Sprintf("%d of %d ranks are %s", kinds[kind], len(ranks), kind))
	}
	v.Kind, v.Reason = order[0], strings.Join(counts, ", ")
	i := slices.IndexFunc(ranks,
		func(r *result.Result) bool { return r.Harness.Verdict.Kind == v.Kind })
	v.Reason += fmt.Sprintf("; rank %d: %s", ranks[i].Rank, ranks[i].Harness.Verdict.Reason)
	// No majority: it could as well be the other kind.
	if len(order) > 1 && 2*kinds[order[0]] <= len(ranks) {
		v.Kind = result.Undecided
	}
	// One busy host is enough: its ranks are in the sums, and slower than the storage let them be.
	all := slices.SortedFunc(maps.Values(hosts),
		func(a, b *host) int { return slices.Compare(a.at[:], b.at[:]) })
	for _, h := range all {
		if out.Simulation == nil && h.ranks > 1 && h.cores > 0 && h.cpu >= busyHost*h.cores {
			v.Kind = result.HarnessLimited
			v.Reason = fmt.Sprintf("the %d ranks on %s together used %.3g of its %.3g cores "+
				"(limit %g %%): more cores would move more bytes; %s", h.ranks, h.at[0], h.cpu,
				h.cores, 100*busyHost, v.Reason)
			break
		}
	}
	if v.Kind != result.ConcurrencyLimited {
		v.Bound = ""
	}
	// Of several hosts, or of a quota for each client, there is no one number of cores.
	if h := all[0]; len(all) == 1 && out.Limits.Cores > 0 && h.cpu <= h.cores {
		v.CPUShare = new(h.cpu / h.cores)
	}
	return v
}
