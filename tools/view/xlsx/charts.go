package xlsx

import (
	"fmt"
	"slices"

	"github.com/xuri/excelize/v2"

	"kvbench/tools/load"
	"kvbench/tools/stats"
)

const (
	chartSheet = "Charts"
	dataSheet  = "Chart Data"
	maxSeries  = 12 // more lines than that nobody tells apart
	maxBars    = 40
)

// palette of the series: dark enough on white, told apart without telling red from green.
var palette = []string{"0072B2", "E69F00", "009E73", "CC79A7", "56B4E9", "D55E00", "6A51A3", "7F7F7F", "8C510A", "2C7BB6", "B2182B", "1B7837"}

// series is one named row of numbers; nil is a gap.
type series struct {
	name   string
	values []any
	dashed bool // what could have been, beside what was
}

// plot is a chart with its data.
type plot struct {
	title, x, y string
	kind        excelize.ChartType
	categories  []string
	series      []series
	log         bool
	percent     bool      // the y axis shows shares
	at          []float64 // positions on the x axis, of a Scatter chart instead of categories
	left        string    // what the chart leaves out
}

// points is how many rows of data the chart has.
func (p plot) points() int { return max(len(p.categories), len(p.at)) }

// charts puts the data of every chart on a sheet and the charts on another.
func (b *book) charts(records []*load.Record, t *stats.Table) {
	plots := []plot{bandwidth(t)}
	for _, op := range []string{"read", "write"} {
		plots = append(plots, percentileLines(t, op), latencyBars(t, op))
	}
	for _, key := range []string{"bssplit_read_kb", "bssplit_write_kb", "qd_read", "qd_write"} {
		plots = append(plots, traceBars(t, key))
	}
	plots = append(plots, overTime(t)...)
	if b.err != nil {
		return
	}
	for _, s := range []string{chartSheet, dataSheet} {
		if _, err := b.f.NewSheet(s); err != nil {
			b.keep(err)
			return
		}
	}
	b.keep(b.f.SetColWidth(dataSheet, "A", "A", 40))
	b.keep(b.f.SetColWidth(dataSheet, "B", "Z", 16))
	hide := false
	b.keep(b.f.SetSheetView(chartSheet, -1, &excelize.ViewOptions{ShowGridLines: &hide}))
	b.landscape(chartSheet, false)
	scale := uint(78) // some programs lay out a chart a fifth wider than others; its page must hold it
	b.keep(b.f.SetPageLayout(chartSheet, &excelize.PageLayoutOptions{AdjustTo: &scale}))
	b.landscape(dataSheet, true)
	row, top, drawn := 0, 0, 0
	for _, p := range plots {
		if len(p.series) == 0 || p.points() == 0 {
			continue
		}
		top += b.draw(p, row, top)
		row += p.points() + 4
		drawn++
	}
	if drawn == 0 {
		for _, s := range []string{chartSheet, dataSheet} {
			b.keep(b.f.SetCellValue(s, "A1", "No result has numbers for a chart."))
		}
	}
}

// label names a benchmark of a run; with one run its name says nothing.
func label(t *stats.Table, run int, bench string) string {
	if len(t.Runs) < 2 {
		return bench
	}
	return t.Labels[run] + ": " + bench
}

// bandwidth by tier: medians over trials.
func bandwidth(t *stats.Table) plot {
	p := plot{title: "Bandwidth by tier (median of the trials)", x: "Benchmark", y: "GiB/s", kind: excelize.Bar}
	var benches []*stats.Benchmark
	for _, b := range t.Benchmarks {
		if len(benches) < maxBars {
			benches = append(benches, b)
			p.categories = append(p.categories, b.Name)
		} else {
			p.left = fmt.Sprintf("The chart shows the first %d of %d benchmarks; all are in Performance Metrics.", maxBars, len(t.Benchmarks))
		}
	}
	for run := range t.Runs {
		for _, tier := range tierNames {
			for _, op := range []string{"read", "write"} {
				s := series{name: label(t, run, tier.title+" "+op)}
				any := false
				for _, b := range benches {
					v, ok := stats.Median(b.Trials[run], "summary.cache_stats.tier_"+tier.key+"_"+op+"_bandwidth_gbps")
					if !ok && tier.key == "storage" && onStorage(b.Name) && !slices.ContainsFunc(b.Trials[run], func(r *load.Record) bool { return len(r.Raw) > 0 }) {
						v, ok = lineMedian(b, run, op+"-B/s")
						v /= 1 << 30
					}
					if ok && v > 0 {
						s.values, any = append(s.values, v), true
					} else {
						s.values = append(s.values, nil)
					}
				}
				if any {
					p.series = append(p.series, s)
				}
			}
		}
	}
	return p
}

func lineMedian(b *stats.Benchmark, run int, unit string) (float64, bool) {
	if m := b.Metric(unit); m != nil && len(m.Cells[run].Values) > 0 {
		return m.Cells[run].Summary.Center, true
	}
	return 0, false
}

// percentileLines of the storage device, medians over trials.
func percentileLines(t *stats.Table, op string) plot {
	p := plot{title: "Storage " + op + " latency of the device by percentile (median of the trials)", x: "Percentile", y: "Latency of one entry (ms)",
		kind: excelize.Line, log: true}
	for _, c := range percentiles {
		p.categories = append(p.categories, c.title)
	}
	each(t, &p, func(b *stats.Benchmark, run int) []any {
		var values []any
		for _, c := range percentiles {
			v, ok := stats.Median(b.Trials[run], "summary.cache_stats.storage_"+op+"_device_"+c.key+"_ms")
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
	p := plot{title: "Storage " + op + " latency of the device: distribution over all trials", x: "Latency of one entry (ms, up to)", y: "Share of the operations",
		kind: excelize.Col, percent: true}
	var hists [][]stats.Bucket
	lo, hi := 1e300, 0.0
	each(t, &p, func(b *stats.Benchmark, run int) []any {
		octaves := stats.Octaves(stats.Merge(b.Trials[run], "storage_"+op+"_device"))
		if len(octaves) == 0 {
			return nil
		}
		hists = append(hists, octaves)
		lo, hi = min(lo, octaves[0].High), max(hi, octaves[len(octaves)-1].High)
		return []any{}
	})
	for high := lo; high <= hi; high *= 2 {
		p.categories = append(p.categories, stats.Number(high/1e6))
		for i, h := range hists {
			total, at := int64(0), int64(0)
			for _, k := range h {
				total += k.Count
				if k.High == high {
					at = k.Count
				}
			}
			p.series[i].values = append(p.series[i].values, share(float64(at)/float64(total)))
		}
	}
	return p
}

// traceBars is one histogram of block-layer tracing.
func traceBars(t *stats.Table, key string) plot {
	p := plot{kind: excelize.Col, y: "Share of the block requests", percent: true}
	var hists [][]stats.Bucket
	lo, hi := 1e300, 0.0
	each(t, &p, func(b *stats.Benchmark, run int) []any {
		buckets, about := stats.TraceOctaves(b.Trials[run], key)
		if len(buckets) == 0 {
			return nil
		}
		p.title, p.x = "Block layer: "+about.Title+" ("+about.What+")", about.Title+" (from, "+about.Unit+")"
		hists = append(hists, buckets)
		lo, hi = min(lo, max(1, buckets[0].Low)), max(hi, buckets[len(buckets)-1].Low)
		return []any{}
	})
	for low := lo; low <= hi; low *= 2 {
		p.categories = append(p.categories, stats.Number(low))
		for i, h := range hists {
			total, at := int64(0), int64(0)
			for _, k := range h {
				total += k.Count
				if max(1, k.Low) == low {
					at += k.Count
				}
			}
			p.series[i].values = append(p.series[i].values, share(float64(at)/float64(total)))
		}
	}
	return p
}

// each adds a series for every benchmark of every run for which values has some, up to maxSeries.
func each(t *stats.Table, p *plot, values func(*stats.Benchmark, int) []any) {
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
