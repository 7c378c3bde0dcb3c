package merge

import (
	"reflect"
	"time"

	"kvbench/kvbench/result"
	"kvbench/tracing"
)

// timeline merges the ranks' timelines. Time 0 is the first start. Each rank's timeline is shifted
// by a whole number of intervals, rounded to the nearest, so counts stay whole and a rank is off by
// at most half an interval. Outside its window a rank counts 0 and has no readings. timeline
// returns nil if the intervals differ or the windows do not overlap.
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
		// The last interval has the longest last interval of the ranks that end in it.
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

// shifted moves a series by some intervals into a new series of n intervals. In a map it moves each
// series. It returns other values unchanged.
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

// times adds the ranks' counts of times by name and row. A row has the same bounds in every rank,
// but a rank has only the rows from its fastest to its slowest time. So rows are matched by bound,
// not by index.
func times(ranks []*result.Result, shifts []int, n int) map[string]tracing.Series {
	counts := map[string][]map[int]int64{}
	for i, r := range ranks {
		for name, g := range r.Timeline.TimesUS {
			if counts[name] == nil {
				counts[name] = make([]map[int]int64, n)
			}
			for k, list := range g.Counts {
				at := shifts[i] + k
				if at >= n || len(list) > len(g.From) {
					continue // the file was edited
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
	out := map[string]tracing.Series{}
	for name, intervals := range counts {
		if g, ok := tracing.NewSeries(intervals); ok {
			out[name] = g
		}
	}
	return out
}
