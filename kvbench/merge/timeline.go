package merge

import (
	"reflect"
	"slices"
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

// Window is the bandwidth of a trial's ranks in their common window: the time in which all ranks
// measured. A sum of bandwidths over each rank's own window is too high if ranks start at different
// times.
type Window struct {
	StartSkewS     float64 `json:"start_skew_s"` // from the first to the last rank's start
	DurationS      float64 `json:"duration_s"`   // of the common window
	ReadBandwidth  float64 `json:"read_bandwidth_gbps"`
	WriteBandwidth float64 `json:"write_bandwidth_gbps"`
}

// gib is the unit of keys that end in _gbps, as in MLPerf Storage.
const gib = 1 << 30

// starts returns when the ranks' windows opened, by the clock of the coordinator's host. If the
// clocks were not compared, it uses each rank's own clock: with NTP the error is far below an
// interval of a timeline. ok is false if a start time cannot be parsed.
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

// start returns when the first window opened, in RFC 3339.
func start(ranks []*result.Result) string {
	times, ok := starts(ranks)
	if !ok {
		return ranks[0].StartTime
	}
	return slices.MinFunc(times, time.Time.Compare).UTC().Format(time.RFC3339Nano)
}

// shared returns each rank's start, and the bounds of the common window, all relative to the first
// start. The common window is empty (to ≤ from) if the windows do not overlap, or if a start or a
// timeline is unknown.
func shared(ranks []*result.Result) (since []time.Duration, from, to time.Duration) {
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

// CommonWindow computes the bandwidth between the last start and the first end from the ranks'
// timelines. An interval that is partly inside counts in proportion. CommonWindow returns nil if a
// rank has no timeline or the windows do not overlap.
func CommonWindow(ranks []*result.Result) *Window {
	since, from, to := shared(ranks)
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

// bytesBetween returns the bytes of a timeline between two times since its start.
func bytesBetween(tl *result.Timeline, bytes []int64, from, to time.Duration) float64 {
	var sum float64
	for i, n := range bytes {
		begin := time.Duration(i) * time.Duration(tl.IntervalNS)
		length := time.Duration(tl.IntervalNS)
		// The last interval may be shorter.
		if i == len(bytes)-1 && tl.LastNS > 0 {
			length = time.Duration(tl.LastNS)
		}
		if overlap := min(to, begin+length) - max(from, begin); overlap > 0 {
			sum += float64(n) * float64(overlap) / float64(length)
		}
	}
	return sum
}
