package xlsx

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/xuri/excelize/v2"

	"kvbench/tools/load"
	"kvbench/tools/stats"
	"kvbench/tools/view"
)

const (
	chartSheet = "Charts"
	dataSheet  = "Chart Data"
	maxCharts  = 10
	maxSeries  = 12 // more colours are hard to distinguish
	maxBars    = 40
)

// series is one named row of numbers, with gaps for non-numbers. It becomes a column of the data
// sheet.
type series struct {
	name   string
	values []float64
	dashed bool
}

// plot is a chart with its data. Kind determines the categories: names for bars, percentiles for
// lines, positions for a scatter.
type plot struct {
	title, x, y string
	kind        excelize.ChartType
	categories  []any
	series      []series
	log, logX   bool
	percent     bool   // the y axis shows shares
	left        string // the note on omitted series
}

// charts writes the data of every chart on one sheet and the charts on another. A chart refers to
// its data by cells, so both are laid out together. The first charts compare all benchmarks; the
// others are the page's.
func (b *book) charts(records []*load.Record, t *stats.Table) {
	plots := []plot{bandwidth(t)}
	for _, op := range []string{"read", "write"} {
		plots = append(plots, percentileLines(t, op), latencyBars(t, op))
	}
	for _, c := range view.New(records, t).Charts() {
		plots = append(plots, fromPage(c))
	}
	plots = slices.DeleteFunc(plots,
		func(p plot) bool { return len(p.series) == 0 || len(p.categories) == 0 })
	if len(plots) == 0 {
		return
	}
	if n := len(plots); n > maxCharts {
		plots = plots[:maxCharts]
		plots[maxCharts-1].left = strings.TrimSpace(plots[maxCharts-1].left + fmt.Sprintf(
			" These are %d of %d charts; the page (kvreport html) has all.", maxCharts, n))
	}
	b.sheet(chartSheet)
	b.sheet(dataSheet)
	b.keep(b.f.SetColWidth(dataSheet, "A", "A", 40))
	b.keep(b.f.SetColWidth(dataSheet, "B", "Z", 16))
	b.keep(b.f.SetSheetView(chartSheet, -1, &excelize.ViewOptions{ShowGridLines: new(false)}))
	b.landscape(chartSheet, false)
	// Some programs draw a chart a fifth wider than others; it must fit the page all the same.
	b.keep(b.f.SetPageLayout(chartSheet, &excelize.PageLayoutOptions{AdjustTo: new(uint(78))}))
	b.landscape(dataSheet, true)
	row, top := 0, 0
	for _, p := range plots {
		top += b.draw(p, row, top)
		row += len(p.categories) + 4
	}
}

// fromPage converts a chart of the page. Positions with ticks are categories, others are numbers. A
// heat map has no native chart, and percentile curves over nines are in percentileLines.
func fromPage(c view.Chart) (p plot) {
	n := c.Numbers()
	categories := len(c.X.Ticks) > 0
	if c.Heat != nil || categories && slices.Contains(n.Labels, "") {
		return plot{}
	}
	p = plot{title: c.Title, x: c.X.Label, y: c.Y.Label, kind: excelize.Scatter, log: c.Y.Log,
		logX: c.X.Log && !categories}
	switch {
	case c.Bars:
		p.kind = excelize.Col
	case categories:
		p.kind = excelize.Line
	}
	for i, x := range n.Places {
		if categories {
			p.categories = append(p.categories, n.Labels[i])
		} else {
			p.categories = append(p.categories, round(x))
		}
	}
	for _, s := range n.Series {
		if len(p.series) == maxSeries {
			p.left = fmt.Sprintf("The chart shows the first %d of %d series.", maxSeries,
				len(n.Series))
			break
		}
		p.series = append(p.series, series{s.Name, s.Values, s.Dashed})
	}
	return p
}

// tierNames are the tiers in titles and in keys of the result file.
var tierNames = []struct{ title, key string }{{"GPU", "gpu"}, {"CPU", "cpu"},
	{"Storage", "storage"}}

// percentiles are the Python benchmark's percentiles.
var percentiles = []struct{ title, key string }{
	{"P50", "p50"}, {"P95", "p95"}, {"P99", "p99"}, {"P99.9", "p999"}, {"P99.99", "p9999"},
}

// label names a benchmark of a run; with one run it leaves out the run's name.
func label(t *stats.Table, run int, bench string) string {
	if len(t.Runs) < 2 {
		return bench
	}
	return t.Labels[run] + ": " + bench
}

// bandwidth by tier: medians over trials. Horizontal bars, because names of benchmarks are long.
func bandwidth(t *stats.Table) plot {
	p := plot{title: "Bandwidth by tier (median of the trials)", x: "Benchmark", y: "GiB/s",
		kind: excelize.Bar}
	// A page holds forty bars.
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

// tierRate is the median bandwidth of a tier in GiB/s, or NaN. Lines without a result file have the
// storage tier's only.
func tierRate(b *stats.Benchmark, run int, tier, op string) float64 {
	v, ok := stats.Median(b.Trials[run],
		key("summary.cache_stats.tier_"+tier+"_"+op+"_bandwidth_gbps"))
	lines := !slices.ContainsFunc(b.Trials[run],
		func(r *load.Record) bool { return len(r.Raw) > 0 })
	if !ok && lines && tier == "storage" && view.OnStorage(b.Name) {
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
			of := key("summary.cache_stats.storage_" + op + "_device_" + c.key +
				"_ms ? latency.levels.storage." + op + ".device." + c.key)
			v, ok := stats.Median(b.Trials[run], of)
			if !ok {
				break // too few samples, or none
			}
			values = append(values, v)
		}
		return values
	})
	return p
}

// latencyBars is the distribution of the device's latency over all trials, by powers of two, for
// every benchmark of every run.
func latencyBars(t *stats.Table, op string) plot {
	p := plot{title: "Storage " + op + " latency of the device: distribution over all trials",
		x: "Latency of one entry (ms, up to)", y: "Share of the operations", kind: excelize.Col,
		percent: true}
	var hists []stats.Octaves
	each(t, &p, func(b *stats.Benchmark, run int) []float64 {
		h := stats.OctavesOf(stats.Merge(b.Trials[run], "storage_"+op+"_device"))
		if len(h) == 0 {
			return nil
		}
		hists = append(hists, h)
		return []float64{}
	})
	bounds, shares := stats.Shares(hists)
	for _, at := range bounds {
		p.categories = append(p.categories, stats.Number(at/1e6))
	}
	for i := range p.series {
		p.series[i].values = shares[i]
	}
	return p
}

// each adds a series for every benchmark of every run for which values returns some, up to
// maxSeries. A note below the chart counts the omitted ones.
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
