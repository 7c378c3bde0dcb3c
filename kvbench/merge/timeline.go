package merge

import (
	"reflect"
	"slices"
	"time"

	"kvbench/kvbench/result"
	"kvbench/tracing"
)

// timeline is the ranks' timelines on one axis, which begins with the first start: each is moved by
// whole intervals, to the nearest. That puts a rank off by half an interval at most and keeps its
// counts whole numbers; a trial has some hundreds of intervals. Nil where intervals differ or no
// time is common.
func timeline(ranks []*result.Result) *result.Timeline {
	first := ranks[0].Timeline
	if len(ranks) == 1 {
		return first
	}
	since, from, to := shared(ranks)
	if to <= from {
		return nil
	}
	a := axis{}
	out := &result.Timeline{IntervalNS: first.IntervalNS}
	for i, r := range ranks {
		if r.Timeline.IntervalNS != first.IntervalNS {
			return nil
		}
		interval := time.Duration(first.IntervalNS)
		shift := int((since[i] + interval/2) / interval)
		a.shifts = append(a.shifts, shift)
		// The last interval is as long as the longest of those that end with it.
		switch end := shift + len(r.Timeline.Requests); {
		case end > a.n:
			a.n, out.LastNS = end, r.Timeline.LastNS
		case end == a.n:
			out.LastNS = max(out.LastNS, r.Timeline.LastNS)
		}
	}
	for i, to := range reflect.ValueOf(out).Elem().Fields() {
		var joined any
		switch to.Interface().(type) {
		case []int64:
			joined = a.counts(series[[]int64](ranks, i))
		case []*int64:
			joined = a.readings(series[[]*int64](ranks, i))
		case map[string][]int64:
			joined = byName(series[map[string][]int64](ranks, i), a.counts)
		case map[string][]*int64:
			joined = byName(series[map[string][]*int64](ranks, i), a.readings)
		case map[string]tracing.Growth:
			joined = a.times(series[map[string]tracing.Growth](ranks, i))
		default:
			continue
		}
		to.Set(reflect.ValueOf(joined))
	}
	return out
}

// series is a field of each rank's timeline.
func series[T any](ranks []*result.Result, field reflect.StructField) (all []T) {
	for _, r := range ranks {
		all = append(all,
			reflect.ValueOf(r.Timeline).Elem().FieldByIndex(field.Index).Interface().(T))
	}
	return all
}

// byName joins the series of each name that any rank has: a tier that only some ranks have is
// theirs.
func byName[T any](ranks []map[string]T, join func([]T) T) map[string]T {
	all := map[string]T{}
	for _, r := range ranks {
		for name := range r {
			var parts []T
			for _, o := range ranks {
				parts = append(parts, o[name])
			}
			all[name] = join(parts)
		}
	}
	return all
}

// axis is the common time of several timelines: n intervals, to which each rank's are moved.
type axis struct {
	n      int
	shifts []int
}

// counts adds counts where the intervals lie: outside of its window a rank counted nothing.
func (a axis) counts(ranks [][]int64) (all []int64) {
	for i, list := range ranks {
		for k, v := range list {
			if all == nil {
				all = make([]int64, a.n)
			}
			if at := a.shifts[i] + k; at < a.n {
				all[at] += v
			}
		}
	}
	return all
}

// readings adds readings, which are known where all ranks have one.
func (a axis) readings(ranks [][]*int64) []*int64 {
	if !slices.ContainsFunc(ranks, func(list []*int64) bool { return list != nil }) {
		return nil
	}
	all, known, list := make([]int64, a.n), make([]int, a.n), make([]*int64, a.n)
	for i, readings := range ranks {
		for k, v := range readings {
			if at := a.shifts[i] + k; v != nil && at < a.n {
				all[at] += *v
				if known[at]++; known[at] == len(ranks) {
					list[at] = &all[at]
				}
			}
		}
	}
	return list
}

// times adds counts of times by name and row. Rows lie at the same values in every rank, but each
// has only the rows from its own fastest to its own slowest: they are matched by their values.
func (a axis) times(ranks []map[string]tracing.Growth) map[string]tracing.Growth {
	counts := map[string][]map[int]int64{}
	for i, r := range ranks {
		for name, g := range r {
			if counts[name] == nil {
				counts[name] = make([]map[int]int64, a.n)
			}
			for k, list := range g.Counts {
				at := a.shifts[i] + k
				if at >= a.n || len(list) > len(g.From) {
					continue // of a file that was edited
				}
				if counts[name][at] == nil {
					counts[name][at] = map[int]int64{}
				}
				for row, c := range list {
					if c > 0 {
						counts[name][at][tracing.Row(g.From[row])] += c
					}
				}
			}
		}
	}
	out := map[string]tracing.Growth{}
	for name := range counts {
		g, ok := tracing.NewGrowth(a.n, func(i int) map[int]int64 { return counts[name][i] })
		if ok {
			out[name] = g
		}
	}
	return out
}
