package xlsx

import (
	"math"

	"github.com/xuri/excelize/v2"

	"kvbench/kvbench/result"
	"kvbench/tools/stats"
)

// mostTimeCharts bounds the results with charts over time: a chart is a page.
const mostTimeCharts = 12

// overTime are the charts of results whose course matters: hit ratios of block traces and rounds of autoscalers, of the first
// trial of each benchmark in each run.
func overTime(t *stats.Table) (out []plot) {
	for _, b := range t.Benchmarks {
		for run := range t.Runs {
			for _, rec := range b.Trials[run] {
				if rec.Result == nil {
					continue
				}
				if len(out) < mostTimeCharts {
					out = append(out, ratioLines(t, b, run, rec.Result)...)
					out = append(out, roundLines(t, b, run, rec.Result)...)
				}
				break
			}
		}
	}
	return out
}

// timePoints is what a chart has room for.
const timePoints = 120

func ratioLines(t *stats.Table, b *stats.Benchmark, run int, r *result.Result) []plot {
	x := stats.BlockRatios(r.Timeline, timePoints)
	if x == nil {
		return nil
	}
	p := timeChart(label(t, run, b.Name)+": block hit ratio over time, first trial", "Share of the blocks asked for")
	p.percent = true
	p.at = x.At
	for _, s := range []struct {
		name   string
		values []float64
		dashed bool
	}{{"hit ratio in the interval", x.Hit, false}, {"ideal in the interval", x.Ideal, true}, {"hit ratio so far", x.HitSoFar, false}, {"ideal so far", x.IdealSoFar, true}} {
		var values []any
		for _, v := range s.values {
			values = append(values, share(v))
		}
		p.series = append(p.series, series{s.name, values, s.dashed})
	}
	return []plot{p}
}

func roundLines(t *stats.Table, b *stats.Benchmark, run int, r *result.Result) []plot {
	all := r.Summary.AutoscalingStats
	if len(all) == 0 {
		return nil
	}
	title := label(t, run, b.Name) + ": "
	crew := timeChart(title+"users, workers and goroutines, first trial", "How many in the round")
	saturation := timeChart(title+"saturation at the end of each round, first trial", "Saturation")
	saturation.percent = true
	rate := timeChart(title+"storage rate of each round, first trial", "GiB/s")
	var users, workers, goroutines, full, bytes []any
	for _, x := range all {
		for _, p := range []*plot{&crew, &saturation, &rate} {
			p.at = append(p.at, math.Round(x.AtS*100)/100)
		}
		users, workers, goroutines = append(users, x.Users), append(workers, x.Workers), append(goroutines, x.Goroutines)
		full, bytes = append(full, fraction(x.Saturation)), append(bytes, x.BytesPerSecond/(1<<30))
	}
	crew.series = []series{{name: "users", values: users}, {name: "workers", values: workers, dashed: true}, {name: "goroutines", values: goroutines}}
	saturation.series = []series{{name: "saturation", values: full}}
	rate.series = []series{{name: "read and written", values: bytes}}
	return []plot{crew, saturation, rate}
}

func timeChart(title, y string) plot {
	return plot{title: title, x: "Time in the window (s)", y: y, kind: excelize.Scatter}
}
