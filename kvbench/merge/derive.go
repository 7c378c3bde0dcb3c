package merge

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"kvbench/kvbench/result"
	"kvbench/kvbench/result/python"
	"kvbench/kvbench/units"
)

// derive makes what the table leaves to it, of the sums that out has by now.
func derive(out *result.Result, ranks []*result.Result) {
	out.Warnings = warnings(ranks)
	status(out, ranks)
	// The trial began when the first of them did.
	out.StartTime = ranks[0].StartTime
	if times, ok := starts(ranks); ok {
		out.StartTime = slices.MinFunc(times, time.Time.Compare).UTC().Format(time.RFC3339Nano)
	}
	out.Parameters = parameters(ranks)
	out.Errors, out.ErrorSamples = failures(ranks)
	tiers(out, ranks)
	out.IO.Roots = alike(ranks, func(r *result.Result) []result.Root { return r.IO.Roots },
		func(r result.Root) string { return r.Directory })
	witness(out, ranks)
	endpoints(out, ranks)
	stalls(out, ranks)
	out.Derive()
	hists := histograms(out, ranks)
	out.Distribute(hists)
	out.Checkpoint = checkpoint(ranks, hists)
	closed(out, ranks)
	contextLoad(out, ranks)
	summary(out, ranks, hists)
	out.Timeline = timeline(ranks)
}

// status is the worst of the ranks', with the reasons of all of them. One that is missing makes the
// trial incomplete.
func status(out *result.Result, ranks []*result.Result) {
	// One client that is alone is no merged result.
	if len(ranks) == 1 && ranks[0].Ranks <= 1 {
		out.Status, out.Error = ranks[0].Status, ranks[0].Error
		return
	}
	// From good to bad; a result of another program has none.
	order := []string{result.StatusComplete, "", result.StatusIncomplete, result.StatusFailed}
	add := func(status, why string) {
		if slices.Index(order, status) > slices.Index(order, out.Status) {
			out.Status = status
		}
		if out.Error != "" && why != "" {
			why = "; " + why
		}
		out.Error += why
	}
	out.Status = result.StatusComplete
	// What all of them say stands once.
	of := map[string][]int{}
	for _, r := range ranks {
		out.MergedRanks = append(out.MergedRanks, r.Rank)
		if why := cmp.Or(r.Error, r.Status); r.Status != result.StatusComplete {
			of[why] = append(of[why], r.Rank)
		}
	}
	for _, r := range ranks {
		why := cmp.Or(r.Error, r.Status)
		if alike := of[why]; len(alike) > 0 && alike[0] == r.Rank {
			add(r.Status, numbered(alike)+": "+why)
		} else if len(alike) > 0 {
			add(r.Status, "")
		}
	}
	if lost := Missing(out); len(lost) > 0 {
		verb := "is"
		if len(lost) > 1 {
			verb = "are"
		}
		add(result.StatusIncomplete,
			fmt.Sprintf("%s of %d %s missing", numbered(lost), out.Ranks, verb))
	}
}

// closed fails a trial whose checkpoints are none of the closed division's, which may be seen only
// where all clients' parts are together: no rank alone knows whose bytes a device has read.
func closed(out *result.Result, ranks []*result.Result) {
	broken := out.Checkpoint.Broken()
	if broken == "" || len(ranks) == 1 || out.Division != result.DivisionClosed ||
		out.Status != result.StatusComplete {
		return
	}
	out.Status, out.Error = result.StatusFailed, "the closed division: "+broken
}

// warnings are for people, who have to find the client that one is about: they are those of all
// ranks: what only some of them say, with their number.
func warnings(ranks []*result.Result) []string {
	if len(ranks) == 1 {
		return ranks[0].Warnings
	}
	all := []string{}
	for _, r := range ranks {
		for _, w := range r.Warnings {
			if slices.ContainsFunc(ranks, func(o *result.Result) bool {
				return !slices.Contains(o.Warnings, w)
			}) {
				w = fmt.Sprintf("rank %d: %s", r.Rank, w)
			}
			if !slices.Contains(all, w) {
				all = append(all, w)
			}
		}
	}
	return all
}

// parameters are those that all ranks have with one value; which rank it is, is none of them.
func parameters(ranks []*result.Result) []result.Parameter {
	if len(ranks) == 1 {
		return ranks[0].Parameters
	}
	list := []result.Parameter{}
	for _, p := range ranks[0].Parameters {
		if !slices.ContainsFunc(ranks, func(r *result.Result) bool {
			return !slices.ContainsFunc(r.Parameters, func(q result.Parameter) bool {
				return q.Name == p.Name && q.Value == p.Value
			})
		}) {
			list = append(list, p)
		}
	}
	return list
}

// mostSamples of failures is what one rank lists, too.
const mostSamples = 10

// failures are counted by kind, the most frequent first, ties in the order of their names.
func failures(ranks []*result.Result) ([]result.ErrorCount, []result.ErrorSample) {
	if len(ranks) == 1 {
		return ranks[0].Errors, ranks[0].ErrorSamples
	}
	// Without its count a failure is its own key: the same of two ranks is one kind.
	counts, samples := map[result.ErrorCount]int64{}, []result.ErrorSample{}
	for _, r := range ranks {
		for _, e := range r.Errors {
			n := e.Count
			e.Count = 0
			counts[e] += n
		}
		samples = append(samples, r.ErrorSamples...)
	}
	list := []result.ErrorCount{}
	for e, n := range counts {
		e.Count = n
		list = append(list, e)
	}
	slices.SortFunc(list, result.ErrorCount.Compare)
	return list, samples[:min(len(samples), mostSamples)]
}

// tiers folds the tiers of each level, fastest first. Not every client has every level: who ran
// without a cpu tier adds nothing to it.
func tiers(out *result.Result, ranks []*result.Result) {
	if ranks[0].Tiers != nil {
		out.Tiers = []result.Tier{}
	}
	out.Tiers = append(out.Tiers, alike(ranks, func(r *result.Result) []result.Tier {
		return r.Tiers
	}, func(t result.Tier) string { return t.Level })...)
}

// alike folds the entries that ranks have under the same name, in the order in which the first rank
// that has one lists them.
func alike[T any](ranks []*result.Result, list func(*result.Result) []T, name func(T) string) []T {
	var out []T
	for _, r := range ranks {
		for _, e := range list(r) {
			same := func(o T) bool { return name(o) == name(e) }
			if slices.ContainsFunc(out, same) {
				continue
			}
			var parts []*T
			for _, other := range ranks {
				entries := list(other)
				if i := slices.IndexFunc(entries, same); i >= 0 {
					parts = append(parts, &entries[i])
				}
			}
			out = append(out, *foldAll(parts))
		}
	}
	return out
}

// witness checks whether the device saw what the clients requested. Of a device that ranks share
// each of them has the counters of all, over its own window: their sum counts bytes twice, and none
// of them is of the trial.
func witness(out *result.Result, ranks []*result.Result) {
	w := &out.DeviceWitness
	shared, served := false, map[bool]bool{}
	seen := map[[2]string]bool{}
	for _, r := range ranks {
		at := [2]string{r.Environment.KernelID(), r.DeviceWitness.Device}
		shared = shared || at[1] != "" && seen[at]
		seen[at] = true
		if s := r.DeviceWitness.ServedFromCache; s != nil {
			served[*s] = true
		}
	}
	if shared {
		*w = result.Witness{Device: w.Device, AppReadBytes: w.AppReadBytes,
			AppWriteBytes: w.AppWriteBytes, Reason: "ranks share the device, so that each of " +
				"them has counted the bytes of all"}
		return
	}
	// One rank that was served from a cache is enough: its share is in the sums.
	if len(served) > 0 {
		w.ServedFromCache = new(served[true])
	}
}

// endpoints folds those of each address. Ranks need not have the same: who is pinned to a part of a
// store may know that part only.
func endpoints(out *result.Result, ranks []*result.Result) {
	out.Endpoints = append(out.Endpoints, alike(ranks, func(r *result.Result) []result.Endpoint {
		return r.Endpoints
	}, func(e result.Endpoint) string { return e.URL })...)
}

// histograms adds them up by their names: HDR histograms of one range add up exactly, which is why
// results keep them. One that cannot be decoded leaves its name unknown.
func histograms(out *result.Result, ranks []*result.Result) result.Histograms {
	all, broken := result.Histograms{}, map[string]bool{}
	if ranks[0].Histograms != nil {
		out.Histograms = map[string]result.HistogramData{}
	}
	for _, r := range ranks {
		for _, name := range slices.Sorted(maps.Keys(r.Histograms)) {
			// All of them are read: which of them a report will show is not known here.
			data := r.Histograms[name]
			h, err := data.Decode()
			switch {
			case err != nil:
			case all[name] == nil: // of one rank alone it stays as it stands
				all[name] = h
			default:
				all[name].Merge(h)
				data, err = all[name].Encode()
			}
			if out.Histograms[name] = data; err != nil {
				broken[name] = true
				out.Warnings = append(out.Warnings,
					fmt.Sprintf("histogram %s of rank %d cannot be added: %v", name, r.Rank, err))
			}
		}
	}
	for name := range broken {
		delete(all, name)
		delete(out.Histograms, name)
	}
	return all
}

// contextLoad is the time to load a context at the rates of all ranks' entries, for contexts that
// are as large in all of them.
func contextLoad(out *result.Result, ranks []*result.Result) {
	if ranks[0].ContextLoad == nil {
		return
	}
	out.ContextLoad = []result.ContextLoad{}
	var rate result.Distribution
	if n := len(out.Tiers); n > 0 {
		rate = out.Latency.Levels[out.Tiers[n-1].Level].Read.Rate
	}
	// Contexts stand in the same order in all results of a version.
	for i, c := range ranks[0].ContextLoad {
		if slices.ContainsFunc(ranks, func(r *result.Result) bool {
			return i >= len(r.ContextLoad) || r.ContextLoad[i].Tokens != c.Tokens ||
				r.ContextLoad[i].Bytes != c.Bytes ||
				units.OrZero(r.ContextLoad[i].RecomputeNS) != units.OrZero(c.RecomputeNS)
		}) {
			continue
		}
		c.Derive(rate)
		out.ContextLoad = append(out.ContextLoad, c)
	}
}

// summary makes the keys of the Python benchmark that are no sums, in its sense of them: 0 where
// there is nothing.
func summary(out *result.Result, ranks []*result.Result, hists result.Histograms) {
	s := &out.Summary
	s.EndToEndLatency = result.NewLatencyMS(hists["request_end_to_end"])
	s.StorageIOLatency = result.NewLatencyMS(hists["request_storage"])
	s.GenerationLatency = result.NewLatencyMS(hists["request_generation"])
	s.MultiTurnStats.Derive()
	c := &s.CacheStats
	c.Derive()
	c.LatencyMS = hists.PythonLatencies()
	// The profile decides by what that benchmark's own assessment goes.
	profile := ""
	for _, p := range out.Parameters {
		if p.Name == "performance-profile" {
			profile = fmt.Sprint(p.Value)
		}
	}
	c.StorageHealth = python.NewStorageHealth(c, profile, hists.CPUP95MS())
	for _, r := range ranks {
		for class, q := range r.Summary.QoSMetrics {
			if s.QoSMetrics == nil {
				s.QoSMetrics = map[string]python.QoSStat{}
			}
			// Without a request there is no target either, and nothing to judge.
			if have, ok := s.QoSMetrics[class]; q.SLA != nil {
				s.QoSMetrics[class] = result.NewQoSStat(hists["request_end_to_end_"+class],
					out.Load[class].Unmet(), int64(math.Round(q.SLA.TargetP95MS*1e6)))
			} else if !ok || have.NoData {
				s.QoSMetrics[class] = q
			}
		}
	}
}

// mostStalls is what one rank lists, too.
const mostStalls = 16

// stalls are those of all ranks, the longest first. A rank without any has none, which is known.
func stalls(out *result.Result, ranks []*result.Result) {
	for _, r := range ranks {
		s := r.Stalls
		if s == nil {
			continue
		}
		if out.Stalls == nil {
			out.Stalls = new(*s)
			continue
		}
		all := out.Stalls
		all.Count += s.Count
		all.LongestNS = max(all.LongestNS, s.LongestNS)
		all.AfterNS = max(all.AfterNS, s.AfterNS)
		list := slices.Concat(all.Longest, s.Longest)
		slices.SortStableFunc(list, func(a, b result.Stall) int {
			return cmp.Compare(b.LengthNS, a.LengthNS)
		})
		all.Longest = list[:min(len(list), mostStalls)]
	}
}
