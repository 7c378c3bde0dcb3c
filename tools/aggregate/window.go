package aggregate

import (
	"slices"
	"time"

	"gonum.org/v1/gonum/stat"

	"kvbench/kvbench/result"
	"kvbench/tools/load"
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

// fields are the numbers of a window, of which the mean is taken.
func (w *Window) fields() [4]*float64 {
	return [...]*float64{&w.StartSkewS, &w.DurationS, &w.ReadBandwidth, &w.WriteBandwidth}
}

// commonWindow reads the timelines of all ranks between the last start and the first end. Intervals
// that are cut by either count in proportion. Nil when a rank has no timeline or no time is common.
func commonWindow(ranks []load.File) *Window {
	var starts, ends []time.Time
	for _, f := range ranks {
		// Clocks of the hosts are taken as they are: skew of NTP is far below an interval of the
		// timeline.
		start, err := time.Parse(time.RFC3339Nano, f.Result.StartTime)
		if err != nil || f.Result.Timeline == nil || f.Result.Timeline.IntervalNS <= 0 {
			return nil
		}
		starts = append(starts, start)
		ends = append(ends, start.Add(time.Duration(f.Result.WindowNS)))
	}
	last := slices.MaxFunc(starts, time.Time.Compare)
	length := slices.MinFunc(ends, time.Time.Compare).Sub(last)
	if length <= 0 {
		return nil // ranks that never ran at the same time
	}
	skew := last.Sub(slices.MinFunc(starts, time.Time.Compare))
	w := &Window{StartSkewS: skew.Seconds(), DurationS: length.Seconds()}
	for i, f := range ranks {
		from := last.Sub(starts[i])
		tl := f.Result.Timeline
		w.ReadBandwidth += bytesBetween(tl, tl.ReadBytes["storage"], from, from+length)
		w.WriteBandwidth += bytesBetween(tl, tl.WriteBytes["storage"], from, from+length)
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

// meanWindow is the mean over the trials that have one, nil when none has. Trials without one are
// left out rather than counted as 0.
func meanWindow(trials []Trial) *Window {
	var values [4][]float64
	for _, t := range trials {
		if t.Window != nil {
			for i, v := range t.Window.fields() {
				values[i] = append(values[i], *v)
			}
		}
	}
	if values[0] == nil {
		return nil
	}
	mean := &Window{}
	for i, v := range mean.fields() {
		*v = stat.Mean(values[i], nil)
	}
	return mean
}
