package xlsx

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/xuri/excelize/v2"
	"gonum.org/v1/gonum/floats"

	"kvbench/tools/load"
	"kvbench/tools/stats"
	"kvbench/tools/view"
)

const (
	chartSheet = "Charts"
	dataSheet  = "Chart Data"
	maxSeries  = 12 // more lines than that nobody tells apart
	maxBars    = 40

	// mostTimeCharts bounds the results with charts over time: a chart is a page, and timePoints is
	// what it has room for.
	mostTimeCharts = 12
	timePoints     = 120
)

// series is one named row of numbers; what is no number is a gap. It becomes a column of the data
// sheet.
type series struct {
	name   string
	values []float64
	dashed bool // what could have been, beside what was
}

// plot is a chart with its data. Kind decides what the categories are: names for bars, percentiles
// for lines, positions for a scatter.
type plot struct {
	title, x, y string
	kind        excelize.ChartType
	categories  []any
	series      []series
	log         bool
	percent     bool   // the y axis shows shares
	left        string // what the chart leaves out
}

// charts puts the data of every chart on a sheet and the charts on another. A chart refers to its
// data by place, so that both are laid out together.
func (b *book) charts(t *stats.Table) {
	// In the order of the questions: how fast, how late, what the device saw, what happened when.
	plots := []plot{bandwidth(t)}
	for _, op := range []string{"read", "write"} {
		plots = append(plots, percentileLines(t, op), latencyBars(t, op))
	}
	for _, key := range []string{"d2c_read_us", "d2c_write_us", "q2d_read_us", "q2d_write_us",
		"bssplit_read_kb", "bssplit_write_kb", "qd_read", "qd_write", "d2c_flush_us",
		"flush_wait_us", "d2c_discard_us"} {
		plots = append(plots, traceBars(t, key))
	}
	plots = append(append(plots, hitsByCapacity(t)...), overTime(t)...)
	plots = slices.DeleteFunc(plots,
		func(p plot) bool { return len(p.series) == 0 || len(p.categories) == 0 })
	if len(plots) == 0 {
		return
	}
	b.sheet(chartSheet)
	b.sheet(dataSheet)
	b.keep(b.f.SetColWidth(dataSheet, "A", "A", 40))
	b.keep(b.f.SetColWidth(dataSheet, "B", "Z", 16))
	b.keep(b.f.SetSheetView(chartSheet, -1, &excelize.ViewOptions{ShowGridLines: new(false)}))
	b.landscape(chartSheet, false)
	// Some programs lay out a chart a fifth wider than others; its page must hold it.
	b.keep(b.f.SetPageLayout(chartSheet, &excelize.PageLayoutOptions{AdjustTo: new(uint(78))}))
	b.landscape(dataSheet, true)
	row, top := 0, 0
	for _, p := range plots {
		top += b.draw(p, row, top)
		row += len(p.categories) + 4
	}
}

// hitsByCapacity are the hit ratios of sweeps of a capacity, as the page draws them.
func hitsByCapacity(t *stats.Table) (out []plot) {
	for _, s := range view.Sweeps(t) {
		for _, c := range s.Figures {
			if !s.Room() || !strings.Contains(c.Title, "Hit ratio") {
				continue
			}
			p := plot{title: s.Title + ": " + c.Title, x: c.X.Label, y: "Found",
				kind: excelize.Line, percent: true}
			for _, tick := range c.X.Ticks {
				p.categories = append(p.categories, tick.Label)
			}
			for _, l := range c.Lines {
				values := make([]float64, len(c.X.Ticks))
				for i, tick := range c.X.Ticks {
					values[i] = math.NaN() // a gap
					if k := slices.Index(l.X, tick.At); k >= 0 {
						values[i] = l.Y[k]
					}
				}
				p.series = append(p.series, series{l.Name, values, l.Name == "ideal"})
			}
			out = append(out, p)
		}
	}
	return out
}

// tierNames are the tiers in titles and in keys of the result file.
var tierNames = []struct{ title, key string }{{"GPU", "gpu"}, {"CPU", "cpu"},
	{"Storage", "storage"}}

// percentiles are those that the Python benchmark has.
var percentiles = []struct{ title, key string }{
	{"P50", "p50"}, {"P95", "p95"}, {"P99", "p99"}, {"P99.9", "p999"}, {"P99.99", "p9999"},
}

// label names a benchmark of a run; with one run its name says nothing.
func label(t *stats.Table, run int, bench string) string {
	if len(t.Runs) < 2 {
		return bench
	}
	return t.Labels[run] + ": " + bench
}

// bandwidth by tier: medians over trials. Bars that lie, because names of benchmarks are long.
func bandwidth(t *stats.Table) plot {
	p := plot{title: "Bandwidth by tier (median of the trials)", x: "Benchmark", y: "GiB/s",
		kind: excelize.Bar}
	// Bars of many benchmarks cannot be told apart, and a page holds forty.
	benches := t.Benchmarks
	if len(benches) > maxBars {
		p.left = fmt.Sprintf("The chart shows the first %d of %d benchmarks; all are in "+
			"Performance Metrics.", maxBars, len(benches))
		benches = benches[:maxBars]
	}
	for _, b := range benches {
		p.categories = append(p.categories, b.Name)
	}
	for run := range t.Runs {
		for _, tier := range tierNames {
			for _, op := range []string{"read", "write"} {
				s := series{name: label(t, run, tier.title+" "+op)}
				for _, b := range benches {
					s.values = append(s.values, tierRate(b, run, tier.key, op))
				}
				if slices.ContainsFunc(s.values, func(v float64) bool { return v > 0 }) {
					p.series = append(p.series, s)
				}
			}
		}
	}
	return p
}

// tierRate is the median bandwidth of a tier in GiB/s, or not a number. Lines without a result file
// give that of the storage tier.
func tierRate(b *stats.Benchmark, run int, tier, op string) float64 {
	v, ok := stats.Median(b.Trials[run], "summary.cache_stats.tier_"+tier+"_"+op+"_bandwidth_gbps")
	lines := !slices.ContainsFunc(b.Trials[run],
		func(r *load.Record) bool { return len(r.Raw) > 0 })
	if !ok && lines && tier == "storage" && onStorage(b.Name) {
		v = b.Cell(op+"-B/s", run).Summary.Center / (1 << 30)
	}
	if v <= 0 {
		return math.NaN()
	}
	return v
}

// percentileLines of the storage device, medians over trials.
func percentileLines(t *stats.Table, op string) plot {
	p := plot{title: "Storage " + op +
		" latency of the device by percentile (median of the trials)", x: "Percentile",
		y: "Latency of one entry (ms)", kind: excelize.Line, log: true}
	for _, c := range percentiles {
		p.categories = append(p.categories, c.title)
	}
	each(t, &p, func(b *stats.Benchmark, run int) (values []float64) {
		for _, c := range percentiles {
			v, ok := stats.Median(b.Trials[run],
				"summary.cache_stats.storage_"+op+"_device_"+c.key+"_ms")
			if !ok {
				return nil
			}
			values = append(values, v)
		}
		return values
	})
	return p
}

// latencyBars is the distribution of the device's latency over all trials.
func latencyBars(t *stats.Table, op string) plot {
	p := plot{title: "Storage " + op + " latency of the device: distribution over all trials",
		x: "Latency of one entry (ms, up to)", y: "Share of the operations", kind: excelize.Col,
		percent: true}
	octaves(t, &p, stats.Bucket.UpTo, 1e6, func(b *stats.Benchmark, run int) []stats.Bucket {
		return stats.Octaves(stats.Merge(b.Trials[run], "storage_"+op+"_device"))
	})
	return p
}

// traceBars is one histogram of block-layer tracing.
func traceBars(t *stats.Table, key string) plot {
	p := plot{kind: excelize.Col, y: "Share of the block requests", percent: true}
	octaves(t, &p, stats.Bucket.From, 1, func(b *stats.Benchmark, run int) []stats.Bucket {
		buckets, about := stats.TraceOctaves(b.Trials[run], key)
		if len(buckets) > 0 {
			p.title = "Block layer: " + about.Title + " (" + about.What + ")"
			p.x = about.Title + " (from, " + about.Unit + ")"
		}
		return buckets
	})
	return p
}

// octaves adds a distribution by powers of two for every benchmark of every run. The categories
// are the bounds of the octaves, divided by scale. Whoever has several runs sees the shift of a
// distribution at once.
func octaves(t *stats.Table, p *plot, bound func(stats.Bucket) float64, scale float64,
	of func(*stats.Benchmark, int) []stats.Bucket,
) {
	var hists [][]stats.Bucket
	each(t, p, func(b *stats.Benchmark, run int) []float64 {
		h := of(b, run)
		if len(h) == 0 {
			return nil
		}
		hists = append(hists, h)
		return []float64{}
	})
	bounds, shares := stats.Shares(hists, bound)
	for _, at := range bounds {
		p.categories = append(p.categories, stats.Number(at/scale))
	}
	for i := range p.series {
		p.series[i].values = shares[i]
	}
}

// each adds a series for every benchmark of every run for which values has some, up to maxSeries.
// What is left out is said below the chart.
func each(t *stats.Table, p *plot, values func(*stats.Benchmark, int) []float64) {
	for _, b := range t.Benchmarks {
		for run := range t.Runs {
			if len(p.series) == maxSeries {
				p.left = fmt.Sprintf("The chart shows the first %d series.", maxSeries)
				return
			}
			if v := values(b, run); v != nil {
				p.series = append(p.series, series{name: label(t, run, b.Name), values: v})
			}
		}
	}
}

// overTime are the charts of results whose course matters: hit ratios of block traces and rounds
// of autoscalers, of the first trial of each benchmark in each run. A workbook shows a real trial,
// not a mean, as the page does.
func overTime(t *stats.Table) (out []plot) {
	for _, b := range t.Benchmarks {
		for run := range t.Runs {
			first := slices.IndexFunc(b.Trials[run],
				func(r *load.Record) bool { return r.Result != nil })
			if first >= 0 && len(out) < mostTimeCharts {
				rec, title := b.Trials[run][first], label(t, run, b.Name)+": "
				out = slices.Concat(out, kneeLines(title, rec), ratioLines(title, rec),
					roundLines(title, rec), courseLines(title, rec))
			}
		}
	}
	return out
}

// timeChart is a chart over the time of the window. Its position is a number, not a category, so
// that rounds of different length stand where they ended.
func timeChart(title, y string, at []float64, lines ...series) plot {
	p := plot{title: title + ", first trial", x: "Time in the window (s)", y: y,
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

// courseLines are the bandwidth of the storage tier, and what waited, over time.
func courseLines(title string, rec *load.Record) (out []plot) {
	tl := rec.Result.Timeline
	if tl == nil || tl.IntervalNS <= 0 {
		return nil
	}
	add := func(what, y string, names []string, values ...[]float64) {
		n := 0
		var lines []series
		for i, list := range values {
			if slices.ContainsFunc(list, func(v float64) bool { return v > 0 }) {
				n = max(n, len(list))
				lines = append(lines, series{name: names[i], values: list})
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
	gib := func(bytes []int64) []float64 {
		list := view.Rates(tl, bytes)
		floats.Scale(scales["GiB"], list)
		return list
	}
	add("bandwidth of the storage tier over time", "GiB/s", []string{"read", "write"},
		gib(tl.ReadBytes["storage"]), gib(tl.WriteBytes["storage"]))
	if view.Requests(rec.Result) {
		add("requests over time", "requests", []string{"queued", "in flight"},
			view.Known(tl.Queued), view.Known(tl.InFlight))
	}
	return out
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

// kneeLines are the curves by which a knee was found.
func kneeLines(title string, rec *load.Record) []plot {
	depths, curves := view.KneeCurves(rec.Result)
	if len(curves) == 0 {
		return nil
	}
	rate := plot{title: title + "rate by the size of a request, first trial",
		x: "Requests in flight", y: "GiB/s", kind: excelize.Scatter}
	p99 := rate
	p99.title, p99.y, p99.log = title+"p99 by the size of a request, first trial", "p99 (ms)", true
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
