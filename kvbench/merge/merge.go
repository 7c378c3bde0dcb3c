package merge

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
)

// Ranks merges the results of a trial's ranks, at least one, in any order. For one rank the numbers do not
// change. If clients is not nil, Ranks completes it and puts it into the merged result. The caller has to
// check that the results belong to one trial.
func Ranks(ranks []*result.Result, clients *result.Clients) *result.Result {
	ranks = slices.SortedFunc(slices.Values(ranks),
		func(a, b *result.Result) int { return a.Rank - b.Rank })
	// First merge the counted fields, then derive the other fields from the sums.
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
	for _, r := range ranks {
		for _, p := range r.Pauses {
			begin, _ := r.Coordinated(p.Time)
			p.Time = begin.Format(result.PauseTime)
			AddPause(out, ranks, p)
		}
	}
	devices(out, ranks)
	out.Warnings = warnings(ranks)
	hists := histograms(out, ranks)
	out.Checkpoint = checkpoint(ranks, hists)
	if out.Timeline = timeline(ranks); out.Timeline == nil && ranks[0].Timeline != nil {
		out.Warnings = append(out.Warnings, "the ranks' timelines are not merged, because their windows do not overlap "+
			"or their intervals differ in length: the result of each rank has its own")
	}
	out.Complete(hists)
	// Only the merged counters show whether another process read from the device. This warning
	// comes first, because ranks may have hundreds of warnings.
	if text := out.DeviceCounters.ReadByOthers(); text != "" && len(ranks) > 1 && met(ranks) {
		out.Warnings = slices.Insert(out.Warnings, 0, text)
	}
	status(out, ranks)
	out.Harness.Verdict = judged(out, ranks)
	if clients != nil {
		describe(clients, ranks)
		out.Clients = clients
	}
	return out
}

// AddPause adds a pause to a merged result. A pause that touches the window of any rank is in the window: the other
// ranks load the storage alone then.
func AddPause(out *result.Result, ranks []*result.Result, p result.Pause) {
	for _, r := range ranks {
		at, err := r.Coordinated(r.StartTime)
		p.InWindow = p.InWindow || err == nil && met(ranks) &&
			p.Touches(result.Pause{Time: at.Format(time.RFC3339Nano), LengthNS: r.WindowNS})
	}
	out.Pauses = append(out.Pauses, p)
}

// Limits of the lists in the merged result. A rank has the same limits.
const (
	mostSamples = 10
	mostStalls  = 16
)

// common reports whether all ranks have parameter p with the same value. The parameter rank is an
// example without one.
func common(ranks []*result.Result, p result.Parameter) bool {
	return !slices.ContainsFunc(ranks, func(r *result.Result) bool {
		return !slices.ContainsFunc(r.Parameters, func(q result.Parameter) bool {
			return q.Name == p.Name && q.Value == p.Value
		})
	})
}

// warnings returns the warnings of all ranks without duplicates. A warning that not all ranks have
// begins with the rank.
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

// histograms adds the histograms of each name over the ranks. The sum is exact, because HDR
// histograms of a unit have the same buckets. If a rank's histogram cannot be decoded, its name is
// left out, with a warning.
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
			out.Histograms[name] = h.Encode()
		}
	}
	return all
}

// status sets the worst status of the ranks, and an error with the reasons of all ranks. A missing
// rank makes a complete trial incomplete. A checkpoint may break a rule of the closed division only
// in the merged result, because one rank does not know whose bytes a device read.
func status(out *result.Result, ranks []*result.Result) {
	if len(ranks) == 1 && ranks[0].Ranks <= 1 { // nothing was merged
		out.Status, out.Error = ranks[0].Status, ranks[0].Error
		return
	}
	order := []string{result.StatusComplete, result.StatusIncomplete, result.StatusFailed} // the worst last
	out.Status = result.StatusComplete
	var reasons []string
	numbers := map[string][]int{} // ranks by reason
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
		if out.Status == result.StatusComplete {
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

// Missing returns the ranks that are not in a merged result, ascending.
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

// Lacks returns a text such as "rank 1 of 2 is missing", "" if no rank is missing.
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

// numbered returns the ranks as text for a sentence, such as "rank 1".
func numbered(ranks []int) string {
	if len(ranks) == 1 {
		return "rank " + units.List(ranks)
	}
	return "ranks " + units.List(ranks)
}

// describe fills in the sums and means of the section clients.
func describe(c *result.Clients, ranks []*result.Result) {
	// Windows that end after a number of operations differ in length, so there is a mean. The
	// ranks' memory peaks may be at different times, so their sum is an upper bound.
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
