package view

import (
	"fmt"
	"slices"

	"gonum.org/v1/gonum/stat"

	"kvbench/kvbench/report"
	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
	"kvbench/tools/load"
)

// timeline has series of the timeline of a result: a figure of the page, and columns of the workbook. A
// series that is 0 throughout is left out.
type timeline struct {
	title, label string
	unit         units.Unit
	series       func(tl *result.Timeline) []series
}

// series has a value per interval.
type series struct {
	name   string
	values []float64
	step   bool // a value is that of the interval; false: that of the interval's beginning
}

// timelines are the bandwidth and the content of each tier, and the requests. A benchmark whose tier is
// full from the first second measures eviction.
var timelines = func() (list []timeline) {
	for _, level := range Levels {
		list = append(list, timeline{"Bandwidth of the " + level + " tier", "bandwidth (%s/s)",
			units.BytesPerSec, func(tl *result.Timeline) []series {
				return []series{{"read", rates(tl, tl.ReadBytes[level]), true},
					{"write", rates(tl, tl.WriteBytes[level]), true}}
			}})
	}
	list = append(list, timeline{"Requests queued and in flight", "how many (requests)",
		units.Number, func(tl *result.Timeline) []series {
			return []series{{"queued", known(tl.Queued), false},
				{"in flight", known(tl.InFlight), false}}
		}}, timeline{"Requests completed", "rate (requests/s)", units.Number,
		func(tl *result.Timeline) []series {
			return []series{{"completed", rates(tl, tl.Requests), true}}
		}})
	for _, level := range Levels {
		list = append(list, timeline{"Fill of the " + level + " tier", "bytes (%s)", units.Bytes,
			func(tl *result.Timeline) []series {
				return []series{{"used", known(tl.TierUsedBytes[level]), false},
					{"evicted so far", running(tl.EvictedBytes[level]), false},
					{"demoted so far", running(tl.DemotedBytes[level]), false}}
			}})
	}
	return list
}()

// rates returns the bytes per second of each interval. It leaves out a last interval of less than half
// the length.
func rates(tl *result.Timeline, bytes []int64) (out []float64) {
	for i, n := range bytes {
		length := tl.IntervalNS
		if i == len(bytes)-1 && tl.LastNS > 0 {
			length = tl.LastNS
		}
		if i == 0 || length >= tl.IntervalNS/2 {
			out = append(out, float64(n)/(float64(length)/1e9))
		}
	}
	return out
}

// known returns the readings, with NaN for an unknown one.
func known(readings []*int64) (out []float64) {
	for _, v := range readings {
		out = append(out, orNaN(v))
	}
	return out
}

// running returns the running sums. In the figure a change of the slope shows when the rate changed.
func running(values []int64) (out []float64) {
	sum := 0.0
	for _, v := range values {
		sum += float64(v)
		out = append(out, sum)
	}
	return out
}

// seriesOf returns the series of a result. A result that counts single operations has no series of requests.
func (d timeline) seriesOf(r *result.Result) []series {
	tl := r.Timeline
	if tl == nil || tl.IntervalNS <= 0 ||
		d.unit == units.Number && r.CompletionUnit == result.UnitOperation {
		return nil
	}
	list := d.series(tl)
	for i, s := range list {
		if !slices.ContainsFunc(s.values, func(v float64) bool { return v > 0 }) {
			list[i].values = nil
		}
	}
	return list
}

// timelineFigures are the figures of the timelines.
func timelineFigures() (list []figure) {
	for _, d := range timelines {
		list = append(list, figure{d.title + " over time, median trial", overTime,
			Axis{Label: d.label, Zero: true}, ofMedian(func(r *result.Result) (lines []Line) {
				for _, s := range d.seriesOf(r) {
					lines = append(lines, smooth(s, r.Timeline.IntervalNS))
				}
				return lines
			})})
	}
	return list
}

// mostSmooth is the largest number of points of a timeline. A hundred intervals, as most have, are noise.
const mostSmooth = 30

// smooth returns the line of a series whose values are interval ns long. A point stands at the beginning of as
// many intervals as keep the number of points readable, and has their mean. The band has their least and
// largest values.
func smooth(s series, interval int64) Line {
	n := max(1, (len(s.values)+mostSmooth-1)/mostSmooth)
	length, text := int64(n)*interval, units.Nanoseconds.Text
	l := Line{Name: s.name, Step: s.step, point: "a point is " + text(length)}
	for part := range slices.Chunk(s.values, n) {
		l.add(float64(len(l.X))*float64(length)/1e9, stat.Mean(part, nil))
		if n > 1 {
			l.Low, l.High = append(l.Low, slices.Min(part)), append(l.High, slices.Max(part))
		}
	}
	if n > 1 {
		l.point = fmt.Sprintf("a point is the mean of %s, the band its least and most %s", text(length),
			text(interval))
	}
	return l
}

// Timeline returns the timeline of a result as a table: a row per interval, with its values and the
// percentiles of its latencies.
func Timeline(rec *load.Record) (s report.Section) {
	if rec.Result == nil || rec.Result.Timeline == nil || rec.Result.Timeline.IntervalNS <= 0 {
		return s
	}
	tl := rec.Result.Timeline
	s = report.Section{Title: "Timeline",
		Columns: []report.Column{{Name: "time", Unit: units.Seconds}}}
	for i := range tl.Requests {
		s.Rows = append(s.Rows, []any{float64(i) * float64(tl.IntervalNS) / 1e9})
	}
	column := func(name string, unit units.Unit, values []float64) {
		if values == nil {
			return
		}
		s.Columns = append(s.Columns, report.Column{Name: name, Unit: unit})
		for i := range s.Rows {
			var v *float64 // a last interval that is too short has no rate
			if i < len(values) {
				v = units.Finite(values[i])
			}
			s.Rows[i] = append(s.Rows[i], v)
		}
	}
	for _, d := range timelines {
		for _, x := range d.seriesOf(rec.Result) {
			column(d.title+": "+x.name, d.unit, x.values)
		}
	}
	for _, f := range followCounted(rec, len(tl.Requests)) {
		for _, l := range percentileLines(f) {
			column(f.title+": "+l.Name, units.Milliseconds, l.Y[:len(f.at)])
		}
	}
	return s
}
