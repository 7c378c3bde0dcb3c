package merge

import (
	"slices"
	"time"

	"kvbench/kvbench/result"
	"kvbench/tracing"
)

// Window is what the ranks of a trial did while all of them were measuring. Sums over each rank's
// own window add up bandwidths that were never there together when clients start at different
// times; this does not.
type Window struct {
	StartSkewS     float64 `json:"start_skew_s"` // between the first and the last rank's start
	DurationS      float64 `json:"duration_s"`   // of the common window
	ReadBandwidth  float64 `json:"read_bandwidth_gbps"`
	WriteBandwidth float64 `json:"write_bandwidth_gbps"`
}

// gib is what keys in _gbps are measured in, for compatibility.
const gib = 1 << 30

// starts are when the ranks' windows opened, by the clock of the coordinator's host; where clocks
// were not compared they are taken as they are: skew of NTP is far below an interval of a timeline.
func starts(ranks []*result.Result) (times []time.Time, ok bool) {
	for _, r := range ranks {
		at, err := r.Coordinated(r.StartTime)
		if err != nil {
			return nil, false
		}
		times = append(times, at)
	}
	return times, true
}

// common is the part of all windows that they share, since the first start. It is empty for ranks
// that never ran at the same time, and where a start or timeline is unknown.
func common(ranks []*result.Result) (since []time.Duration, from, to time.Duration) {
	times, ok := starts(ranks)
	if !ok {
		return nil, 0, 0
	}
	first := slices.MinFunc(times, time.Time.Compare)
	for _, at := range times {
		since = append(since, at.Sub(first))
	}
	// From the last start to the first end.
	from = slices.Max(since)
	for i, r := range ranks {
		if r.Timeline == nil || r.Timeline.IntervalNS <= 0 {
			return nil, 0, 0
		}
		if end := since[i] + time.Duration(r.WindowNS); i == 0 || end < to {
			to = end
		}
	}
	return since, from, to
}

// CommonWindow reads the timelines of all ranks between the last start and the first end. Intervals
// that are cut by either count in proportion. Nil when a rank has no timeline or no time is common.
func CommonWindow(ranks []*result.Result) *Window {
	since, from, to := common(ranks)
	length := to - from
	if length <= 0 {
		return nil
	}
	w := &Window{StartSkewS: from.Seconds(), DurationS: length.Seconds()}
	for i, r := range ranks {
		at, tl := from-since[i], r.Timeline
		w.ReadBandwidth += bytesBetween(tl, tl.ReadBytes["storage"], at, at+length)
		w.WriteBandwidth += bytesBetween(tl, tl.WriteBytes["storage"], at, at+length)
	}
	w.ReadBandwidth /= gib * w.DurationS
	w.WriteBandwidth /= gib * w.DurationS
	return w
}

// bytesBetween sums the intervals of a timeline from one moment of its window to another.
func bytesBetween(tl *result.Timeline, bytes []int64, from, to time.Duration) float64 {
	var sum float64
	for i, n := range bytes {
		begin := time.Duration(i) * time.Duration(tl.IntervalNS)
		length := time.Duration(tl.IntervalNS)
		// The last interval is as long as the window left it.
		if i == len(bytes)-1 && tl.LastNS > 0 {
			length = time.Duration(tl.LastNS)
		}
		if overlap := min(to, begin+length) - max(from, begin); overlap > 0 {
			sum += float64(n) * float64(overlap) / float64(length)
		}
	}
	return sum
}

// timeline is what a page draws: a rank's bandwidth alone is not the trial's. It puts the ranks' on
// one axis, which begins with the first start: each is moved by whole intervals, to the nearest.
// Readings are known where all ranks have one. Nil where intervals differ or no time is common.
func timeline(ranks []*result.Result) *result.Timeline {
	first := ranks[0].Timeline
	if len(ranks) == 1 {
		return first
	}
	since, from, to := common(ranks)
	if to <= from {
		return nil
	}
	// To move by whole intervals puts a rank off by half of one at most, and keeps its counts whole
	// numbers; a trial has some hundreds of intervals.
	n, shifts := 0, make([]int, len(ranks))
	out := &result.Timeline{IntervalS: first.IntervalS, IntervalNS: first.IntervalNS}
	for i, r := range ranks {
		if r.Timeline.IntervalNS != first.IntervalNS {
			return nil
		}
		interval := time.Duration(first.IntervalNS)
		shifts[i] = int((since[i] + interval/2) / interval)
		// The last interval is as long as the longest of those that end with it.
		switch end := shifts[i] + len(r.Timeline.Requests); {
		case end > n:
			n, out.LastNS = end, r.Timeline.LastNS
		case end == n:
			out.LastNS = max(out.LastNS, r.Timeline.LastNS)
		}
	}
	// Counts of an interval are added where the intervals lie; outside of its own window a rank
	// counted nothing.
	sums := func(of func(*result.Timeline) []int64) (all []int64) {
		for i, r := range ranks {
			for k, v := range of(r.Timeline) {
				if all == nil {
					all = make([]int64, n)
				}
				if at := shifts[i] + k; at < n {
					all[at] += v
				}
			}
		}
		return all
	}
	// A reading of some of them is no reading of the trial.
	readings := func(of func(*result.Timeline) []*int64) []*int64 {
		all, known := make([]int64, n), make([]int, n)
		for i, r := range ranks {
			for k, v := range of(r.Timeline) {
				if at := shifts[i] + k; v != nil && at < n {
					all[at] += *v
					known[at]++
				}
			}
		}
		list := make([]*int64, n)
		for k := range list {
			if known[k] == len(ranks) {
				list[k] = &all[k]
			}
		}
		return list
	}
	out.Requests = sums(func(t *result.Timeline) []int64 { return t.Requests })
	out.Blocks = sums(func(t *result.Timeline) []int64 { return t.Blocks })
	out.BlockHits = sums(func(t *result.Timeline) []int64 { return t.BlockHits })
	if out.Blocks != nil {
		out.BlockIdeal = readings(func(t *result.Timeline) []*int64 { return t.BlockIdeal })
	}
	out.Queued = readings(func(t *result.Timeline) []*int64 { return t.Queued })
	out.InFlight = readings(func(t *result.Timeline) []*int64 { return t.InFlight })
	out.TierUsedBytes = byLevel(ranks,
		func(t *result.Timeline) map[string][]*int64 { return t.TierUsedBytes }, readings)
	for _, m := range []func(*result.Timeline) *map[string][]int64{
		func(t *result.Timeline) *map[string][]int64 { return &t.ReadBytes },
		func(t *result.Timeline) *map[string][]int64 { return &t.WriteBytes },
		func(t *result.Timeline) *map[string][]int64 { return &t.EvictedBytes },
		func(t *result.Timeline) *map[string][]int64 { return &t.DemotedBytes },
	} {
		*m(out) = byLevel(ranks,
			func(t *result.Timeline) map[string][]int64 { return *m(t) }, sums)
	}
	out.TimesUS = times(ranks, n, shifts)
	return out
}

// times adds the ranks' times where their intervals lie, by name and row. Rows lie at the same
// values in every rank, but each has only those from its own fastest to its own slowest: it is by
// their values that they are matched.
func times(ranks []*result.Result, n int, shifts []int) map[string]tracing.Growth {
	counts := map[string][]map[int]int64{}
	for i, r := range ranks {
		for name, g := range r.Timeline.TimesUS {
			// A rank that never read has no such name, and adds nothing to those that did.
			if counts[name] == nil {
				counts[name] = make([]map[int]int64, n)
			}
			for k, list := range g.Counts {
				at := shifts[i] + k
				if at >= n || len(list) > len(g.From) {
					continue // of a file that was edited
				}
				if counts[name][at] == nil {
					counts[name][at] = map[int]int64{}
				}
				// The same value is in another place of another rank's list.
				for row, c := range list {
					if c > 0 {
						counts[name][at][tracing.Row(g.From[row])] += c
					}
				}
			}
		}
	}
	// What is joined has the rows from the fastest of all to the slowest.
	out := map[string]tracing.Growth{}
	for name, rows := range counts {
		if g, ok := tracing.NewGrowth(n, func(i int) map[int]int64 { return rows[i] }); ok {
			out[name] = g
		}
	}
	return out
}

// byLevel folds maps of arrays: a level that only some ranks have is theirs. It folds the arrays of
// each level that any rank has.
func byLevel[T any](ranks []*result.Result, of func(*result.Timeline) map[string][]T,
	join func(func(*result.Timeline) []T) []T,
) map[string][]T {
	all := map[string][]T{}
	for _, r := range ranks {
		for level := range of(r.Timeline) {
			if _, ok := all[level]; !ok {
				all[level] = join(func(t *result.Timeline) []T { return of(t)[level] })
			}
		}
	}
	return all
}
