package view

import (
	"fmt"
	"slices"
	"strings"

	"gonum.org/v1/gonum/floats"

	"kvbench/kvbench/report"
	"kvbench/kvbench/units"
	"kvbench/tools/load"
	"kvbench/tools/stats"
)

// traceFigures show the kernel's histograms of traced results: the share of requests per power of two.
func traceFigures(b *stats.Benchmark, t *stats.Table) (out []Chart) {
	for _, what := range []struct{ title, label, keys string }{
		{"Time of block requests at the device (D2C)", "dispatch to completion (µs, from)",
			"d2c_read_us d2c_write_us"},
		{"Time of block requests in the scheduler (Q2D)", "queue to dispatch (µs, from)",
			"q2d_read_us q2d_write_us"},
		{"Sizes of block requests", "size of a request (KiB, from)",
			"bssplit_read_kb bssplit_write_kb"},
		{"Queue depth at dispatch", "requests in flight (from)", "qd_read qd_write"},
		{"Flushes", "time of a flush (µs, from)", "d2c_flush_us flush_wait_us fsync_us"},
		{"Discards", "time of a discard (µs, from)", "d2c_discard_us"},
		{"Gaps with nothing in flight", "length of a gap (µs, from)", "idle_us"},
		{"Calls on files", "time of a call (µs, from)", "vfs_read_us vfs_write_us"},
		{"Sizes of calls on files", "bytes of a call (KiB, from)",
			"vfs_read_sz_kb vfs_write_sz_kb"},
		{"Gaps between calls on files", "length of a gap (µs, from)",
			"write_to_fsync_us fadvise_to_read_us"},
	} {
		c := Chart{Title: what.title + ", all trials", X: Axis{Label: what.label}, Bars: true,
			Y: Axis{Label: "share of all (%)", Zero: true}}
		var parts []stats.Octaves
		for run := range t.Runs {
			for _, key := range strings.Fields(what.keys) {
				list, kind := stats.TraceOctaves(b.Trials[run], key)
				if len(list) > 0 {
					l := lineOf(t, run, len(parts), kind.Title)
					l.Colour, l.Dash = len(parts)%Colours, 0
					c.Lines = append(c.Lines, l)
					parts = append(parts, list)
				}
			}
		}
		// All runs have the same octaves. A run without a value in an octave has a bar of height 0.
		ends, shares := stats.Shares(parts)
		for i, end := range ends {
			c.X.Ticks = append(c.X.Ticks, Tick{At: float64(i), Label: fmt.Sprint(end / 2)})
		}
		for i := range c.Lines {
			c.Lines[i].Y = shares[i]
			floats.Scale(100, shares[i])
		}
		out = append(out, c)
	}
	return out
}

// heatColour is grey, so that coloured lines stand out.
const heatColour = 7

// courseFigures show histograms over time: the percentiles of all runs in one figure and, if heats is
// true, a heat map per run. A mean over the window hides the second in which a drive was slow.
func courseFigures(typical []trial, t *stats.Table, heats bool,
	of func(*load.Record, int) []stats.Followed) (out []Chart) {
	var titles []string
	known := make([][]stats.Followed, len(typical))
	coarse := make([][]stats.Followed, len(typical))
	for i, k := range typical {
		known[i] = of(k.Record, stats.MostIntervals)
		coarse[i] = of(k.Record, stats.PercentileIntervals(k.Record))
		for _, f := range known[i] {
			if !slices.Contains(titles, f.Title) {
				titles = append(titles, f.Title)
			}
		}
	}
	for _, title := range titles {
		all := Chart{Title: title + " over time, median trial", X: overTime, Time: true}
		var each []Chart
		for i, k := range typical {
			at := slices.IndexFunc(known[i],
				func(f stats.Followed) bool { return f.Title == title })
			if at < 0 {
				continue
			}
			f := known[i][at]
			all.Y = Axis{Label: f.Label, Log: true}
			lines := percentileLines(t, k.run, coarse[i][at])
			all.Lines = append(all.Lines, lines...)
			each = append(each, Chart{Title: title + ofRun(t, k.run) + ": how often, over time",
				X: overTime, Y: all.Y, Time: true, Lines: lines,
				Heat: &Heat{Colour: heatColour, At: f.At, From: f.From, Counts: f.Rows()}})
		}
		if len(each) > 1 || !heats { // with one run the heat map already has the lines
			out = append(out, all)
		}
		if heats {
			out = append(out, each...)
		}
	}
	return out
}

// percentileLines returns a line per percentile, with one value per interval.
func percentileLines(t *stats.Table, run int, f stats.Followed) (out []Line) {
	for i, p := range stats.CoursePercentiles {
		l := lineOf(t, run, i, fmt.Sprintf("p%g, from", 100*p))
		values := f.Percentiles(p)
		for j, end := range f.At {
			l.hold(values[j], end)
		}
		if slices.ContainsFunc(values, func(v float64) bool { return v > 0 }) {
			out = append(out, l)
		}
	}
	return out
}

// traced returns the percentiles of the traced histograms as tables, one table per unit: a column with
// both microseconds and requests cannot be sorted.
func traced(rec *load.Record) (out []report.Section) {
	for _, kind := range []struct {
		what, name string
		unit       units.Unit
		scale      float64
	}{{"times", "µs", units.Nanoseconds, 1e3}, {"sizes", "KiB", units.Bytes, 1 << 10},
		{"places", "GiB", units.Bytes, 1 << 30},
		{"requests in flight", "requests", units.Number, 1}} {
		s := report.Section{Title: "What the kernel saw: " + kind.what, Folded: true,
			Columns: []report.Column{{Name: "histogram"}, {Name: "what it is"},
				{Name: "samples", Unit: units.Count}, {Name: "p50", Unit: kind.unit},
				{Name: "p95", Unit: kind.unit}, {Name: "p99", Unit: kind.unit},
				{Name: "below", Unit: kind.unit}}}
		for _, h := range rec.Tracing() {
			if h.Units == kind.name {
				s.Rows = append(s.Rows, []any{h.Title, h.What, h.Count, *h.P50 * kind.scale,
					*h.P95 * kind.scale, *h.P99 * kind.scale,
					h.Buckets[len(h.Buckets)-1].Range[1] * kind.scale})
			}
		}
		if len(s.Rows) > 0 {
			out = append(out, s)
		}
	}
	return out
}
