package merge

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
)

// Together is Fold for clients that one of them coordinated: they began at one moment, so that of a
// device that they share one client's counters are those of all. C says who they are and how they
// began; what follows from their results is filled in.
func Together(ranks []*result.Result, c *result.Clients) (*result.Result, error) {
	out, err := Fold(ranks)
	if err != nil {
		return nil, err
	}
	ranks = slices.SortedFunc(slices.Values(ranks),
		func(a, b *result.Result) int { return a.Rank - b.Rank })
	out.Clients = c
	// Of windows that end by a count each has its own length: what one operation took is of their
	// mean. Peaks of memory need not have been at one moment; all of them had to fit.
	var windows int64
	c.PeakRSSBytes = new(int64)
	for _, r := range ranks {
		windows += r.WindowNS
		if v := r.Harness.PeakRSSBytes; v != nil && c.PeakRSSBytes != nil {
			*c.PeakRSSBytes += *v
		} else {
			c.PeakRSSBytes = nil
		}
	}
	c.MeanWindowNS = windows / int64(len(ranks))
	if w := CommonWindow(ranks); w != nil {
		c.CommonWindowNS = new(int64(w.DurationS * float64(time.Second)))
	}
	if c.StartSkewNS != nil {
		sharedWitness(out, ranks)
		// No rank alone knows which other processes used its device.
		if text := out.DeviceWitness.ReadByOthers(); text != "" && out.Ranks > 1 {
			// Before those of a rank, of which there may be hundreds.
			out.Warnings = slices.Insert(out.Warnings, 0, text)
		}
	}
	out.Harness.Verdict = verdict(out, ranks)
	return out, nil
}

// sharedWitness takes of each device the counters of its lowest rank: the windows of all are one.
// Devices are those of a kernel.
func sharedWitness(out *result.Result, ranks []*result.Result) {
	var devices []*result.Result
	seen := map[[2]string]bool{}
	for _, r := range ranks {
		at := [2]string{r.Environment.KernelID(), r.DeviceWitness.Device}
		if at[1] == "" {
			return // one of them is unknown: so is the sum
		}
		if !seen[at] {
			seen[at] = true
			devices = append(devices, r)
		}
	}
	if len(devices) == len(ranks) {
		return // each its own: their sums stand already
	}
	some, err := Fold(devices)
	if err != nil {
		return
	}
	// Of the devices as of clients with one each; of the application what all ranks have asked for.
	w := some.DeviceWitness
	w.AppReadBytes, w.AppWriteBytes = out.DeviceWitness.AppReadBytes,
		out.DeviceWitness.AppWriteBytes
	w.ReadRatio, w.WriteRatio, w.ServedFromCache = nil, nil, nil
	if w.ReadBytes != nil && w.WriteBytes != nil {
		w.ReadRatio = units.Ratio(*w.ReadBytes, w.AppReadBytes)
		w.WriteRatio = units.Ratio(*w.WriteBytes, w.AppWriteBytes)
	}
	// As of one client: the kernel saw less than was asked for.
	if w.ReadRatio != nil {
		w.ServedFromCache = new(*w.ReadRatio < result.ServedFromCacheBelow)
	}
	out.DeviceWitness = w
}

// busyHost is the share of a host's cores from which on the clients there are what limits them.
const busyHost = 0.85

// verdict is what bounded the clients together: their host, where those of one have used its cores
// up, which none of them may have noticed; else what most of them say.
func verdict(out *result.Result, ranks []*result.Result) result.Verdict {
	v := out.Harness.Verdict
	if len(ranks) == 1 {
		return v
	}
	// Cores are those that the clients of a host may use: the largest quota of any, as if they had
	// it together. Clients with a quota each, side by side, would be taken for busier than they
	// are, and the reason says so in the words of the verdict.
	//
	// A host is a name of a kernel: containers side by side need not share their processors.
	type host struct {
		cpu, cores float64
		ranks      int
	}
	hosts, kinds := map[[2]string]*host{}, map[string]int{}
	for _, r := range ranks {
		kinds[r.Harness.Verdict.Kind]++
		at := [2]string{r.Environment.Hostname, r.Environment.BootID}
		h := hosts[at]
		if h == nil {
			h = &host{}
			hosts[at] = h
		}
		if r.WindowNS > 0 {
			h.cpu += float64(r.Harness.CPUNS) / float64(r.WindowNS)
		}
		h.cores, h.ranks = max(h.cores, r.Limits.Cores), h.ranks+1
	}
	// The most frequent first; equals by name, so that the same results give the same words.
	order := slices.SortedFunc(maps.Keys(kinds), func(a, b string) int {
		if kinds[a] != kinds[b] {
			return kinds[b] - kinds[a]
		}
		return strings.Compare(a, b)
	})
	var counts []string
	for _, kind := range order {
		counts = append(counts, fmt.Sprintf("%d of %d ranks are %s", kinds[kind], len(ranks), kind))
	}
	v.Kind, v.Reason = order[0], strings.Join(counts, ", ")
	for _, r := range ranks {
		if own := r.Harness.Verdict; own.Kind == v.Kind {
			v.Reason += fmt.Sprintf("; rank %d: %s", r.Rank, own.Reason)
			break
		}
	}
	// No majority: it could as well be said that it is the other one.
	if len(order) > 1 && 2*kinds[order[0]] <= len(ranks) {
		v.Kind = result.Undecided
	}
	// One busy host is enough: its ranks are in the sums, and slower than the storage let them be.
	places := slices.SortedFunc(maps.Keys(hosts), func(a, b [2]string) int {
		return slices.Compare(a[:], b[:])
	})
	for _, at := range places {
		h := hosts[at]
		if out.Simulation == nil && h.ranks > 1 && h.cores > 0 && h.cpu >= busyHost*h.cores {
			v.Kind = result.HarnessLimited
			v.Reason = fmt.Sprintf("the %d ranks on %s together used %.3g of its %.3g cores "+
				"(limit %g %%): more cores would move more bytes; %s", h.ranks, at[0], h.cpu,
				h.cores, 100*busyHost, v.Reason)
			break
		}
	}
	if v.Kind != result.ConcurrencyLimited {
		v.Bound = ""
	}
	// Of several hosts, or of several quotas side by side, there is no one number of cores.
	if h := hosts[places[0]]; len(places) == 1 && out.Limits.Cores > 0 && h.cpu <= h.cores {
		v.CPUShare = new(h.cpu / h.cores)
	}
	return v
}
