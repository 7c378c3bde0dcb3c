package merge

import (
	"reflect"
	"time"

	"kvbench/kvbench/result"
	"kvbench/tracing"
)

// timeline is the ranks' timelines on one axis, which begins with the first start: each is moved by
// whole intervals, to the nearest. That puts a rank off by half an interval at most and keeps its
// counts whole numbers; a trial has some hundreds of intervals. Outside of its window a rank counted
// nothing, and has no readings. Nil where intervals differ or no time is common.
func timeline(ranks []*result.Result) *result.Timeline {
	first := ranks[0].Timeline
	if len(ranks) == 1 {
		return first
	}
	since, from, to := shared(ranks)
	if to <= from {
		return nil
	}
	shifts, n, last := make([]int, len(ranks)), 0, int64(0)
	for i, r := range ranks {
		if r.Timeline.IntervalNS != first.IntervalNS {
			return nil
		}
		interval := time.Duration(first.IntervalNS)
		shifts[i] = int((since[i] + interval/2) / interval)
		// The last interval is as long as the longest of those that end with it.
		switch end := shifts[i] + len(r.Timeline.Requests); {
		case end > n:
			n, last = end, r.Timeline.LastNS
		case end == n:
			last = max(last, r.Timeline.LastNS)
		}
	}
	moved := make([]*result.Timeline, len(ranks))
	for i, r := range ranks {
		moved[i] = new(*r.Timeline)
		for field, to := range reflect.ValueOf(moved[i]).Elem().Fields() {
			if field.Name != "TimesUS" {
				to.Set(shifted(to, shifts[i], n))
			}
		}
	}
	out := merged(moved)
	out.LastNS, out.TimesUS = last, times(ranks, shifts, n)
	return out
}

// shifted moves a series, or each of a map, on an axis of n intervals. Other values stay as they are.
func shifted(series reflect.Value, by, n int) reflect.Value {
	kind := series.Kind()
	if kind != reflect.Map && kind != reflect.Slice || series.IsNil() {
		return series
	}
	if kind == reflect.Slice {
		to := reflect.MakeSlice(series.Type(), n, n)
		reflect.Copy(to.Slice(min(by, n), n), series)
		return to
	}
	to := reflect.MakeMap(series.Type())
	for _, name := range series.MapKeys() {
		to.SetMapIndex(name, shifted(series.MapIndex(name), by, n))
	}
	return to
}

// times adds counts of times by name and row. Rows lie at the same values in every rank, but each
// has only the rows from its own fastest to its own slowest: they are matched by their values.
func times(ranks []*result.Result, shifts []int, n int) map[string]tracing.Growth {
	counts := map[string][]map[int]int64{}
	for i, r := range ranks {
		for name, g := range r.Timeline.TimesUS {
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
				for row, c := range list {
					if c > 0 {
						counts[name][at][tracing.Row(g.From[row])] += c
					}
				}
			}
		}
	}
	out := map[string]tracing.Growth{}
	for name, intervals := range counts {
		if g, ok := tracing.NewGrowth(intervals); ok {
			out[name] = g
		}
	}
	return out
}
