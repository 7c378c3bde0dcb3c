package merge

import (
	"slices"
	"time"

	"kvbench/kvbench/result"
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

// starts are when the ranks' windows opened, by the clock of the coordinator's host. Where clocks
// were not compared they are taken as they are: the skew of NTP is far below an interval of a
// timeline.
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

// start is when the first window opened.
func start(ranks []*result.Result) string {
	times, ok := starts(ranks)
	if !ok {
		return ranks[0].StartTime
	}
	return slices.MinFunc(times, time.Time.Compare).UTC().Format(time.RFC3339Nano)
}

// shared is the part of all windows that they have in common, since the first start. It is empty
// for ranks that never ran at the same time, and where a start or timeline is unknown.
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

// CommonWindow reads the timelines of all ranks between the last start and the first end. Intervals
// that are cut by either count in proportion. Nil when a rank has no timeline or no time is common.
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
