package merge

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"kvbench/kvbench/result"
	"kvbench/kvbench/result/python"
	"kvbench/kvbench/units"
)

// Ranks makes the result of a trial from the results of its ranks, in any order. Of one rank it is
// a result with the same numbers. Clients, if any, describes the ranks and how they began;
// Ranks completes it. The error reports what is not the ranks of a trial: none, two of one rank, or
// of several benchmarks or trials. That all ranks measured alike is for the caller to check.
func Ranks(ranks []*result.Result, clients *result.Clients) (*result.Result, error) {
	ranks = slices.SortedFunc(slices.Values(ranks),
		func(a, b *result.Result) int { return a.Rank - b.Rank })
	if len(ranks) == 0 {
		return nil, errors.New("no rank's result to merge")
	}
	for i, r := range ranks[1:] {
		first := ranks[0]
		if r.Rank == ranks[i].Rank {
			return nil, fmt.Errorf("two results of rank %d in trial %d of %s", r.Rank, r.Trial,
				cmp.Or(r.Name, r.Benchmark))
		}
		if r.Benchmark != first.Benchmark || r.Name != first.Name || r.Trial != first.Trial {
			return nil, fmt.Errorf("trial %d of %s and trial %d of %s are no ranks of one trial",
				first.Trial, cmp.Or(first.Name, first.Benchmark), r.Trial,
				cmp.Or(r.Name, r.Benchmark))
		}
	}
	// First the fields by their rules and what only all ranks together show, then everything that
	// follows from these, as in the result of one client.
	out := merged(ranks)
	out.StartTime = start(ranks)
	out.Parameters = slices.DeleteFunc(slices.Clone(ranks[0].Parameters),
		func(p result.Parameter) bool { return !common(ranks, p) })
	out.ErrorSamples = out.ErrorSamples[:min(len(out.ErrorSamples), mostSamples)]
	if s := out.Stalls; s != nil {
		slices.SortStableFunc(s.Longest, func(a, b result.Stall) int {
			return cmp.Compare(b.LengthNS, a.LengthNS)
		})
		s.Longest = s.Longest[:min(len(s.Longest), mostStalls)]
	}
	devices(out, ranks)
	out.Warnings = warnings(ranks)
	hists := histograms(out, ranks)
	out.Checkpoint = checkpoint(ranks, hists)
	out.Timeline = timeline(ranks)
	out.Complete(hists)
	// No rank alone knows which other processes used its device. This comes before the warnings of
	// ranks, of which there may be hundreds.
	if text := out.DeviceCounters.ReadByOthers(); text != "" && len(ranks) > 1 && met(ranks) {
		out.Warnings = slices.Insert(out.Warnings, 0, text)
	}
	status(out, ranks)
	out.Harness.Verdict = judged(out, ranks)
	if clients != nil {
		describe(clients, ranks)
		out.Clients = clients
	}
	return out, nil
}

// One rank lists as many.
const (
	mostSamples = 10
	mostStalls  = 16
)

// common reports whether all ranks have a parameter with the same value: the rank is none of these.
func common(ranks []*result.Result, p result.Parameter) bool {
	return !slices.ContainsFunc(ranks, func(r *result.Result) bool {
		return !slices.ContainsFunc(r.Parameters, func(q result.Parameter) bool {
			return q.Name == p.Name && q.Value == p.Value
		})
	})
}

// warnings are the warnings of all ranks, with the number of the rank where not all have it.
func warnings(ranks []*result.Result) []string {
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

// histograms adds the histograms of each name: HDR histograms of one range add exactly, which is
// why results keep them. A name of which one cannot be decoded is left out.
func histograms(out *result.Result, ranks []*result.Result) result.Histograms {
	all, broken := result.Histograms{}, map[string]bool{}
	for _, r := range ranks {
		for _, name := range slices.Sorted(maps.Keys(r.Histograms)) {
			h, err := r.Histograms[name].Decode()
			switch {
			case err != nil:
				broken[name] = true
				out.Warnings = append(out.Warnings,
					fmt.Sprintf("histogram %s of rank %d cannot be added: %v", name, r.Rank, err))
			case all[name] == nil:
				all[name] = h
			default:
				all[name].Merge(h)
			}
		}
	}
	maps.DeleteFunc(all, func(name string, _ *result.Histogram) bool { return broken[name] })
	out.Histograms = map[string]result.HistogramData{}
	for name, h := range all {
		if out.Histograms[name] = ranks[0].Histograms[name]; len(ranks) > 1 {
			out.Histograms[name], _ = h.Encode() // which cannot fail where it was decoded
		}
	}
	return all
}

// status is the worst status of the ranks, with the reasons of all of them. A missing rank makes
// the trial incomplete; checkpoints that are not the closed division's may show only when the parts
// of all ranks are together, because no rank alone knows whose bytes a device has read.
func status(out *result.Result, ranks []*result.Result) {
	if len(ranks) == 1 && ranks[0].Ranks <= 1 { // no merged result
		out.Status, out.Error = ranks[0].Status, ranks[0].Error
		return
	}
	// From good to bad; the results of another program have none.
	order := []string{result.StatusComplete, "", result.StatusIncomplete, result.StatusFailed}
	out.Status = result.StatusComplete
	var reasons []string
	numbers := map[string][]int{} // a reason that several ranks have stands once
	for _, r := range ranks {
		out.MergedRanks = append(out.MergedRanks, r.Rank)
		if slices.Index(order, r.Status) > slices.Index(order, out.Status) {
			out.Status = r.Status
		}
		if why := cmp.Or(r.Error, r.Status); r.Status != result.StatusComplete {
			if numbers[why] == nil {
				reasons = append(reasons, why)
			}
			numbers[why] = append(numbers[why], r.Rank)
		}
	}
	for i, why := range reasons {
		reasons[i] = numbered(numbers[why]) + ": " + why
	}
	if lacks := Lacks(out); lacks != "" {
		if out.Status == result.StatusComplete || out.Status == "" {
			out.Status = result.StatusIncomplete
		}
		reasons = append(reasons, lacks)
	}
	out.Error = strings.Join(reasons, "; ")
	if broken := out.Checkpoint.Broken(); broken != "" && len(ranks) > 1 &&
		out.Division == result.DivisionClosed && out.Status == result.StatusComplete {
		out.Status, out.Error = result.StatusFailed, "the closed division: "+broken
	}
}

// Missing are the ranks that a merged result lacks.
func Missing(r *result.Result) (list []int) {
	have := r.MergedRanks
	if have == nil {
		have = []int{r.Rank} // never merged
	}
	for rank := range r.Ranks {
		if !slices.Contains(have, rank) {
			list = append(list, rank)
		}
	}
	return list
}

// Lacks names the ranks that a merged result lacks: rank 1 of 2 is missing.
func Lacks(r *result.Result) string {
	switch lost := Missing(r); len(lost) {
	case 0:
		return ""
	case 1:
		return fmt.Sprintf("%s of %d is missing", numbered(lost), r.Ranks)
	default:
		return fmt.Sprintf("%s of %d are missing", numbered(lost), r.Ranks)
	}
}

// Python adds up the results of the ranks of a trial of the Python benchmark: counts and rates.
// Percentiles of one rank are not the trial's, and are left out.
func Python(ranks []*python.Result) *python.Result {
	out := merged(ranks)
	out.Summary.MultiTurnStats.Derive()
	c := &out.Summary.CacheStats
	c.Derive()
	c.StorageHealth = python.NewStorageHealth(c, "", nil)
	return out
}

// numbered names ranks in a sentence: rank 1, ranks 0 and 3.
func numbered(ranks []int) string {
	if len(ranks) == 1 {
		return "rank " + units.List(ranks)
	}
	return "ranks " + units.List(ranks)
}

// describe completes what the clients did together.
func describe(c *result.Clients, ranks []*result.Result) {
	// Windows that end by a count differ in length: what one operation took is of their mean. Peaks
	// of memory need not have been at one moment; all of them had to fit.
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
}
