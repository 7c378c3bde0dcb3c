package workbook

import (
	"math"
	"strconv"
	"time"

	"github.com/xuri/excelize/v2"

	"kvbench/kvbench"
	"kvbench/tools/compare"
	"kvbench/tools/curves"
	"kvbench/tools/input"
)

// parts are sheets of what only some results have; a workbook without such results has no such sheets.
func (b *book) parts(records []*input.Record) {
	for _, t := range []table{simulations(records), rounds(records), blockCaches(records), replays(records), validations(records)} {
		if len(t.rows) > 0 {
			t.heads = append(t.heads, "Run", "Benchmark", "Trial")
			b.table(t)
		}
	}
}

// whose says which result a row is of.
func whose(rec *input.Record) []any {
	return []any{rec.Source, compare.NameOf(rec), rec.Lookup("trial")}
}

// rowsOf makes the rows of a sheet.
func rowsOf(records []*input.Record, f func(*kvbench.Result) [][]any) (rows [][]any) {
	for _, rec := range records {
		if rec.Result == nil {
			continue
		}
		for _, row := range f(rec.Result) {
			rows = append(rows, append(row, whose(rec)...))
		}
	}
	return rows
}

func one(row ...any) [][]any { return [][]any{row} }

// number and fraction take what may be unknown.
func number(v *float64) any {
	if v == nil {
		return nil
	}
	return *v
}

func fraction(v *float64) any {
	if v == nil {
		return nil
	}
	return share(*v)
}

func simulations(records []*input.Record) table {
	return table{sheet: "Simulation", frozen: 1, heads: []string{"Notice", "Model Read (GiB/s)", "Model Write (GiB/s)", "Model Read Latency (µs)", "Model Write Latency (µs)",
		"Model Parallelism", "Model Duplex", "Medium Busy", "Sustained Users", "Users", "Queue Growth (requests/s)", "I/O Trace Rows", "Computed In (s)"},
		rows: rowsOf(records, func(r *kvbench.Result) [][]any {
			s := r.Simulation
			if s == nil {
				return nil
			}
			row := []any{r.Notice, nil, nil, nil, nil, nil, nil}
			if d := s.Device; d != nil {
				const gib, us = 1 << 30, float64(time.Microsecond)
				row = []any{r.Notice, d.Read / gib, d.Write / gib, float64(d.ReadLatency) / us, float64(d.WriteLatency) / us, d.Parallelism, d.Duplex}
			}
			return one(append(row, fraction(s.DeviceBusyShare), number(s.SustainedUsers), r.Workload.Users, number(s.QueueGrowth), float64(s.TraceRows), float64(s.WallNS)/1e9)...)
		})}
}

func rounds(records []*input.Record) table {
	return table{sheet: "Autoscaling", frozen: 1, heads: []string{"Round", "Ended At (s)", "Users", "Workers", "Goroutines", "Storage Rate (GiB/s)", "Noise (GiB/s)",
		"Read P95 per 100 MiB (ms)", "Write P95 per 100 MiB (ms)", "Saturation", "Next Users", "Decision", "Mode", "Users Sustained", "Peak Users", "Peak Rate (GiB/s)", "Found"},
		rows: rowsOf(records, func(r *kvbench.Result) (rows [][]any) {
			s := r.Summary.AutoscalingSummary
			if s == nil {
				return nil
			}
			const gib = 1 << 30
			for i, x := range r.Summary.AutoscalingStats {
				rows = append(rows, []any{i + 1, x.AtS, x.Users, x.Workers, x.Goroutines, x.BytesPerSecond / gib, x.Noise / gib, number(x.ReadP95), number(x.WriteP95),
					fraction(x.Saturation), x.NextUsers, x.Decision, s.Mode, s.SustainedUsers, s.PeakUsers, s.PeakRate / gib, s.Found})
			}
			return rows
		})}
}

func blockCaches(records []*input.Record) table {
	return table{sheet: "Block Cache", heads: []string{"Block Hit Ratio", "Ideal Hit Ratio", "Prefix-hit Ratio", "Token Hit Ratio", "Bytes Saved (GiB)", "Requests", "Blocks",
		"Hits", "Pending Hits", "Written", "Behind a Missing One"},
		rows: rowsOf(records, func(r *kvbench.Result) [][]any {
			c := r.BlockCache
			if c == nil {
				return nil
			}
			return one(number(c.HitRatio), number(c.IdealHitRatio), number(c.PrefixHitRatio), number(c.TokenHitRatio), float64(c.BytesSaved)/(1<<30), float64(c.Requests),
				float64(c.Blocks), float64(c.Hits), float64(c.Pending), float64(c.Written), float64(c.Kept))
		})}
}

func replays(records []*input.Record) table {
	return table{sheet: "Replay", heads: []string{"Rows", "Not Selected", "Reads", "Writes", "Deletes", "Reads of Evicted", "Reads of Never Written", "Deletes of Unknown",
		"Overwrites", "Too Large", "Deleted for Room", "Largest Delay (ms)"},
		rows: rowsOf(records, func(r *kvbench.Result) [][]any {
			p := r.Replay
			if p == nil {
				return nil
			}
			return one(float64(p.Rows), float64(p.Skipped), float64(p.Reads), float64(p.Writes), float64(p.Deletes), float64(p.EvictedReads), float64(p.UnwrittenReads),
				float64(p.UnknownDeletes), float64(p.Overwrites), float64(p.TooLarge), float64(p.Evictions), float64(p.LateNS)/1e6)
		})}
}

func validations(records []*input.Record) table {
	return table{sheet: "Validation", heads: []string{"Number", "This Run", "Recorded", "Difference", "Tolerance", "Judged", "Validation Passed", "Recorded Requests", "Malformed Rows", "Recorded In"},
		rows: rowsOf(records, func(r *kvbench.Result) (rows [][]any) {
			v := r.Validation
			if v == nil {
				return nil
			}
			for _, c := range v.Checks() {
				rows = append(rows, []any{c.Name, number(c.Measured), number(c.Recorded), fraction(c.Difference), share(v.Tolerance), c.Word(), v.Passed, float64(v.Requests),
					float64(v.Malformed), v.Trace})
			}
			return rows
		})}
}

// mostTimeCharts bounds the results with charts over time: a chart is a page.
const mostTimeCharts = 12

// overTime are the charts of results whose course matters: hit ratios of block traces and rounds of autoscalers, of the first
// trial of each benchmark in each run.
func overTime(t *compare.Table) (out []plot) {
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

func ratioLines(t *compare.Table, b *compare.Benchmark, run int, r *kvbench.Result) []plot {
	x := curves.BlockRatios(r.Timeline, timePoints)
	if x == nil {
		return nil
	}
	p := timeChart(label(t, run, b.Name)+": block hit ratio over time, first trial", "Share of the blocks asked for")
	p.percent = true
	for _, at := range x.At {
		p.categories = append(p.categories, seconds(at))
	}
	for _, s := range []struct {
		name   string
		values []float64
	}{{"hit ratio in the interval", x.Hit}, {"ideal in the interval", x.Ideal}, {"hit ratio so far", x.HitSoFar}, {"ideal so far", x.IdealSoFar}} {
		var values []any
		for _, v := range s.values {
			values = append(values, share(v))
		}
		p.series = append(p.series, series{s.name, values})
	}
	return []plot{p}
}

func roundLines(t *compare.Table, b *compare.Benchmark, run int, r *kvbench.Result) []plot {
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
		at := seconds(x.AtS)
		for _, p := range []*plot{&crew, &saturation, &rate} {
			p.categories = append(p.categories, at)
		}
		users, workers, goroutines = append(users, x.Users), append(workers, x.Workers), append(goroutines, x.Goroutines)
		full, bytes = append(full, fraction(x.Saturation)), append(bytes, x.BytesPerSecond/(1<<30))
	}
	crew.series = []series{{"users", users}, {"workers", workers}, {"goroutines", goroutines}}
	saturation.series = []series{{"saturation", full}}
	rate.series = []series{{"read and written", bytes}}
	return []plot{crew, saturation, rate}
}

func timeChart(title, y string) plot {
	return plot{title: title, x: "Time in the window (s)", y: y, kind: excelize.Line, dense: true}
}

func seconds(v float64) string { return strconv.FormatFloat(math.Round(v*100)/100, 'f', -1, 64) }
