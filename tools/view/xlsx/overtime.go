package xlsx

import (
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"

	"github.com/xuri/excelize/v2"
	"gonum.org/v1/gonum/floats"

	"kvbench/kvbench/result"
	"kvbench/tools/load"
	"kvbench/tools/stats"
	"kvbench/tools/view"
)

const (
	// mostCourses bounds the results with charts over time, of which each has up to a dozen: a
	// chart is a page, and timePoints is what it has room for.
	mostCourses = 8
	timePoints  = 120

	// heatSheet holds histograms over time, as cells that are the darker the more they count, and
	// heatColumns is how many of them stand side by side on a screen.
	heatSheet   = "Heat Maps"
	heatColumns = 60
)

// course is the trials of a benchmark in a run that have results.
type course struct {
	trials []*load.Record
	median *load.Record // of them
}

// courses are the median trials of each benchmark in each run that has results, with all trials
// for comparison: a workbook shows the trial that the page shows. There are mostCourses of them at
// most, and left is set where there would be more.
func courses(t *stats.Table, left *bool) iter.Seq2[string, course] {
	return func(yield func(string, course) bool) {
		n := 0
		for _, b := range t.Benchmarks {
			for run := range t.Runs {
				trials := slices.DeleteFunc(slices.Clone(b.Trials[run]),
					func(r *load.Record) bool { return r.Result == nil })
				if len(trials) == 0 {
					continue
				}
				if n == mostCourses {
					*left = true
					return
				}
				if n++; !yield(label(t, run, b.Name)+": ",
					course{trials, view.MedianTrial(b, run)}) {
					return
				}
			}
		}
	}
}

// overTime are the charts of results whose course matters: hit ratios of block traces, rounds of
// autoscalers, rates, what waited, and percentiles.
func overTime(t *stats.Table) (out []plot) {
	left := false
	for title, c := range courses(t, &left) {
		// What was run for comes first: a knee, a hit ratio, an autoscaler.
		rec := c.median
		out = slices.Concat(out, kneeLines(title, rec), ratioLines(title, rec),
			roundLines(title, rec), rateLines(title, c), percentileCourses(title, rec))
	}
	if left && len(out) > 0 {
		out[len(out)-1].left = fmt.Sprintf(
			"The charts over time are those of the first %d results.", mostCourses)
	}
	return out
}

// timeChart is a chart over the time of the window. Its position is a number, not a category, so
// that rounds of different length stand where they ended.
func timeChart(title, y string, at []float64, lines ...series) plot {
	p := plot{title: title + ", median trial", x: "Time in the window (s)", y: y,
		kind: excelize.Scatter, series: lines, percent: strings.HasPrefix(y, "S")}
	for _, s := range at {
		p.categories = append(p.categories, s)
	}
	return p
}

// ratioLines are the block hit ratio and the ideal one, which is dashed: it is what could have
// been.
func ratioLines(title string, rec *load.Record) []plot {
	x := rec.Result.Timeline.BlockRatios(timePoints)
	if x == nil {
		return nil
	}
	return []plot{timeChart(title+"block hit ratio over time", "Share of the blocks asked for",
		x.At, series{"hit ratio in the interval", x.Hit, false},
		series{"ideal in the interval", x.Ideal, true},
		series{"hit ratio so far", x.HitSoFar, false}, series{"ideal so far", x.IdealSoFar, true})}
}

// rateLines are the bandwidth of the storage tier, and what waited, over time. Dashed beside a line
// are the least and the most of all trials in each interval: a stall that is in one of them only is
// not the drive's habit.
func rateLines(title string, c course) (out []plot) {
	tl := c.median.Result.Timeline
	if tl == nil || tl.IntervalNS <= 0 {
		return nil
	}
	add := func(what, y string, scale float64, names []string,
		of ...func(*result.Timeline) []float64) {
		n := 0
		var lines []series
		line := func(name string, dashed bool, values []float64) {
			// A line of zeros is a tier that was not used.
			if slices.ContainsFunc(values, func(v float64) bool { return v > 0 }) {
				n = max(n, len(values))
				values = slices.Clone(values)
				floats.Scale(scale, values)
				lines = append(lines, series{name, values, dashed})
			}
		}
		for i, values := range of {
			line(names[i], false, values(tl))
			if band, ok := view.BandOf(c.trials, tl.IntervalNS, values); ok {
				line(names[i]+", least of all trials", true, band.Lo)
				line(names[i]+", most of all trials", true, band.Hi)
			}
		}
		var at []float64
		for i := range n {
			at = append(at, math.Round(float64(i)*float64(tl.IntervalNS)/1e7)/100)
		}
		if len(lines) > 0 {
			out = append(out, timeChart(title+what, y, at, lines...))
		}
	}
	add("bandwidth of the storage tier over time", "GiB/s", scales["GiB"],
		[]string{"read", "write"},
		func(tl *result.Timeline) []float64 { return stats.Rates(tl, tl.ReadBytes["storage"]) },
		func(tl *result.Timeline) []float64 { return stats.Rates(tl, tl.WriteBytes["storage"]) })
	if view.Requests(c.median.Result) {
		add("requests over time", "requests", 1, []string{"queued", "in flight"},
			func(tl *result.Timeline) []float64 { return stats.Known(tl.Queued) },
			func(tl *result.Timeline) []float64 { return stats.Known(tl.InFlight) })
	}
	return out
}

// percentileCourses are percentiles over time, of what every result counts and of a trace.
func percentileCourses(title string, rec *load.Record) (out []plot) {
	// A point of a line is as wide as half a column of a heat map, at most.
	n := min(stats.PercentileIntervals(rec), timePoints)
	for _, f := range slices.Concat(stats.FollowCounted(rec, n), stats.FollowTraced(rec, n)) {
		var lines []series
		for _, p := range stats.CoursePercentiles {
			values := f.Percentiles(p)
			if slices.ContainsFunc(values, func(v float64) bool { return v > 0 }) {
				lines = append(lines, series{name: fmt.Sprintf("p%g, from", 100*p),
					values: values})
			}
		}
		if len(lines) > 0 {
			p := timeChart(title+strings.ToLower(f.Title[:1])+f.Title[1:]+" over time",
				strings.Replace(f.Label, ", log scale", "", 1), starts(f.At), lines...)
			p.log, p.percent = true, false
			out = append(out, p)
		}
	}
	return out
}

// starts are where intervals begin that end there.
func starts(ends []float64) []float64 {
	return append([]float64{0}, ends[:len(ends)-1]...)
}

// roundLines are three charts of the rounds of an autoscaler. A round stands where it ended.
func roundLines(title string, rec *load.Record) (out []plot) {
	rounds := rec.Result.Rounds()
	if len(rounds) == 0 {
		return nil
	}
	var at []float64
	for _, x := range rounds {
		at = append(at, math.Round(x.AtS*100)/100)
	}
	for i, about := range []struct {
		title, y string
		scale    float64
	}{{"users, workers and goroutines", "How many in the round", 1},
		{"saturation at the end of each round", "Saturation", 1},
		{"storage rate of each round", "GiB/s", scales["GiB"]}} {
		p := timeChart(title+about.title, about.y, at)
		for _, s := range view.Rounds[i] {
			line := series{name: s.Name, dashed: s.Name == "workers"}
			for _, x := range rounds {
				line.values = append(line.values, s.Of(x)*about.scale)
			}
			p.series = append(p.series, line)
		}
		out = append(out, p)
	}
	return out
}

// kneeLines are the curves by which a knee was found, of the trial that the page shows, too.
func kneeLines(title string, rec *load.Record) []plot {
	depths, curves := view.KneeCurves(rec.Result)
	if len(curves) == 0 {
		return nil
	}
	rate := plot{title: title + "rate by the size of a request, median trial",
		x: "Requests in flight", y: "GiB/s", kind: excelize.Scatter}
	p99 := rate
	p99.title, p99.y, p99.log = title+"p99 by the size of a request, median trial", "p99 (ms)", true
	for _, d := range depths {
		rate.categories = append(rate.categories, d)
	}
	p99.categories = rate.categories
	for _, c := range curves {
		r, l := series{name: c.Name}, series{name: c.Name}
		for i := range depths {
			r.values = append(r.values, c.Rate[i]*scales["GiB"])
			l.values = append(l.values, c.P99[i]/1e6)
		}
		rate.series, p99.series = append(rate.series, r), append(p99.series, l)
	}
	return []plot{rate, p99}
}

// heats draws what happened over time how often, of the same results as the charts over time: the
// least value below, as in a chart. Numbers are kept, so that nobody has to judge a colour.
func (b *book) heats(t *stats.Table) {
	top, left := 0, false
	for title, c := range courses(t, &left) {
		for _, f := range slices.Concat(stats.FollowCounted(c.median, heatColumns),
			stats.FollowTraced(c.median, heatColumns)) {
			if top == 0 {
				b.sheet(heatSheet)
				b.keep(b.f.SetColWidth(heatSheet, "A", "A", 14))
				b.keep(b.f.SetColWidth(heatSheet, "B", "BI", 5))
				b.landscape(heatSheet, true)
				b.keep(b.f.SetPanes(heatSheet, &excelize.Panes{Freeze: true, XSplit: 1,
					TopLeftCell: "B1", ActivePane: "topRight"}))
			}
			top = b.heat(title+f.Title+", median trial", f, top)
		}
	}
	if left && top > 0 {
		b.set(heatSheet, 0, top, fmt.Sprintf("These are the first %d results.", mostCourses))
	}
}

// heat writes one from a row on, and returns the row for the next.
func (b *book) heat(title string, f stats.Followed, top int) int {
	b.set(heatSheet, 0, top, title)
	b.keep(b.f.SetCellStyle(heatSheet, cell(0, top), cell(0, top), b.title))
	b.set(heatSheet, 0, top+1, strings.Replace(f.Label, "log scale", "from", 1)+", by s")
	for i, at := range starts(f.At) {
		b.set(heatSheet, 1+i, top+1, math.Round(at*10)/10)
	}
	b.keep(b.f.SetCellStyle(heatSheet, cell(0, top+1), cell(len(f.At), top+1), b.head))
	// Large values stand above small ones, as on an axis.
	first, last := top+2, top+1+len(f.From)
	// A cell without a count stays empty, so that a wide map is a small file.
	for i, counts := range f.Rows() {
		for k, n := range counts {
			if n > 0 {
				b.set(heatSheet, 1+i, last-k, float64(n))
			}
		}
	}
	for k, from := range f.From {
		b.set(heatSheet, 0, last-k, math.Round(from*10)/10)
	}
	// The most of all is darkest: a single count is still seen beside a thousand, since empty cells
	// have no colour at all.
	b.keep(b.f.SetConditionalFormat(heatSheet, cell(1, first)+":"+cell(len(f.At), last),
		[]excelize.ConditionalFormatOptions{{Type: "3_color_scale", Criteria: "=",
			MinType: "min", MidType: "percentile", MidValue: "50", MaxType: "max",
			MinColor: "#F7FBFF", MidColor: "#9ECAE1", MaxColor: "#08519C"}}))
	return last + 2
}
