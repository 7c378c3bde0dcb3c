package view

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"kvbench/kvbench/result"
	"kvbench/tools/load"
	"kvbench/tools/stats"
)

// mostPoints of a line over time: more than a plot has room for. Neighbours are added up, so that
// a run of an hour keeps its shape.
const mostPoints = 400

// overTime is the X axis of what happened in the window. It begins at 0, when the window opens:
// warm-up is not shown.
var overTime = Axis{Label: "time in the window (s)", Zero: true}

// runName is a legend's prefix; with one run it says nothing.
func runName(t *stats.Table, run int, what string) string {
	if len(t.Runs) < 2 {
		return what
	}
	return t.Labels[run] + " " + what
}

// lineOf is a series of a run. Its colour is that of the run where there are several, and the dash
// tells apart what has it in common; with one run the colour is that of what it shows. Nobody
// tells more than eight colours apart, and dashes read in print.
func lineOf(t *stats.Table, run, what int, name string) Line {
	l := Line{Name: runName(t, run, name), Colour: what}
	if len(t.Runs) > 1 {
		l.Colour, l.Dash = run, what
	}
	return l
}

// Levels are the tiers of a result by their keys, from fast to slow. They are keys of the schema
// and do not change with the levels that an engine may have.
var Levels = []string{"gpu", "cpu", "storage"}

// inBytes draws lines over time in the binary unit that suits the largest value. The label says
// where the unit stands in it.
func inBytes(caption, label string, lines []Line) []Figure {
	most := 0.0
	// Gaps have no value that could be the largest.
	for _, l := range lines {
		for _, v := range l.Y {
			if !math.IsNaN(v) {
				most = max(most, v)
			}
		}
	}
	// One unit for all lines of a figure, or they could not be compared.
	by, unit := 1.0*(1<<10), "KiB"
	for i, u := range []string{"MiB", "GiB", "TiB"} {
		if at := math.Ldexp(1, 20+10*i); most >= at {
			by, unit = at, u
		}
	}
	for _, l := range lines {
		for i := range l.Y {
			l.Y[i] /= by
		}
	}
	return figureOf(caption,
		Chart{X: overTime, Y: Axis{Label: fmt.Sprintf(label, unit), Zero: true}, Lines: lines})
}

// positive says whether there is anything to draw: a line of zeros is a tier that was not used.
func positive[N int64 | float64](v N) bool { return v > 0 }

// bandwidthFigures are bandwidth over time: one per tier that moved bytes, of the median trial of
// each run.
func bandwidthFigures(typical []trial, t *stats.Table) (out []Figure) {
	for _, level := range Levels {
		var lines []Line
		// One line for each run and direction.
		for _, k := range typical {
			tl := k.Result.Timeline
			if tl == nil || tl.IntervalNS <= 0 {
				continue
			}
			for i, op := range []struct {
				name  string
				bytes []int64
			}{{"read", tl.ReadBytes[level]}, {"write", tl.WriteBytes[level]}} {
				if !slices.ContainsFunc(op.bytes, positive) {
					continue
				}
				l := lineOf(t, k.run, i, op.name)
				l.Step = true
				for j, n := range op.bytes {
					length := tl.IntervalNS
					// The last interval ends with the window.
					if j == len(op.bytes)-1 && tl.LastNS > 0 {
						if length = tl.LastNS; length < tl.IntervalNS/2 && j > 0 {
							break // too short an end to speak of a rate
						}
					}
					l.add(float64(j)*float64(tl.IntervalNS)/1e9, float64(n)/(float64(length)/1e9))
				}
				lines = append(lines, l)
			}
		}
		out = append(out, inBytes("Bandwidth of the "+level+" tier over time, median trial",
			"bandwidth (%s/s)", lines)...)
	}
	return out
}

// nines are the ticks of a percentile axis. Each further nine has the same room, as each is ten
// times as rare.
var nines = []Tick{{At: 0, Label: "min"}, {At: stats.Nines(0.5), Label: "50"}, {At: 1, Label: "90"},
	{At: 2, Label: "99"}, {At: 3, Label: "99.9"}, {At: 4, Label: "99.99"}, {At: 5, Label: "99.999"}}

// latencyFigures are percentile curves over all trials: of each tier's operations, and of requests.
func latencyFigures(b *stats.Benchmark, t *stats.Table) (out []Figure) {
	draw := func(caption string, keys, names [2]string) {
		c := Chart{X: Axis{Label: "percentile (%)", Ticks: nines},
			Y: Axis{Label: "latency (ms, log scale)", Log: true}}
		for run := range t.Runs {
			for i, key := range keys {
				l := lineOf(t, run, i, names[i])
				// All trials together: the tail needs every sample that there is.
				if h := stats.Merge(b.Trials[run], key); h.Count() > 0 {
					for _, p := range stats.Percentiles(h) {
						l.add(stats.Nines(p.Share), max(p.Value, 1)/1e6)
					}
				}
				if len(l.X) > 1 { // else too few samples for any percentile
					c.Lines = append(c.Lines, l)
				}
			}
		}
		out = append(out, figureOf(caption, c)...)
	}
	for _, level := range Levels {
		draw("Latency of one entry on the "+level+" tier, all trials",
			[2]string{level + "_read", level + "_write"}, [2]string{"read", "write"})
	}
	if requests(b) {
		draw("Latency of requests, all trials", [2]string{"request_end_to_end", "request_storage"},
			[2]string{"end to end", "storage I/O"})
	}
	return out
}

// requests says whether the benchmark runs requests, rather than single operations. Plain reads
// and writes have no requests whose latency could be shown.
func requests(b *stats.Benchmark) bool {
	for _, rec := range slices.Concat(b.Trials...) {
		if rec.Result != nil {
			return Requests(rec.Result)
		}
	}
	return false
}

// Requests says whether a result counts requests, rather than single operations.
func Requests(r *result.Result) bool { return r.CompletionUnit != result.UnitOperation }

// fillFigures show how full the tiers were, and what was evicted or demoted so far. A tier that is
// full from the first second on measures eviction, whatever its name.
func fillFigures(typical []trial, t *stats.Table) (out []Figure) {
	for _, level := range Levels {
		var lines []Line
		for _, k := range typical {
			tl := k.Result.Timeline
			if tl == nil {
				continue
			}
			var used []float64
			for _, v := range tl.TierUsedBytes[level] {
				used = append(used, orNaN(v))
			}
			for i, s := range []struct {
				name   string
				values []float64
			}{{"used", used}, {"evicted so far", running(tl.EvictedBytes[level])},
				{"demoted so far", running(tl.DemotedBytes[level])}} {
				if !slices.ContainsFunc(s.values, positive) {
					continue
				}
				l := lineOf(t, k.run, i, s.name)
				for j, v := range s.values {
					l.add(float64(j)*float64(tl.IntervalNS)/1e9, v)
				}
				lines = append(lines, l)
			}
		}
		out = append(out, inBytes("Fill of the "+level+" tier over time, median trial",
			"bytes (%s)", lines)...)
	}
	return out
}

// orNaN makes a gap of what is not known.
func orNaN[N int64 | float64](v *N) float64 {
	if v == nil {
		return math.NaN()
	}
	return float64(*v)
}

// running adds up: how much was evicted says more than when, and a curve that bends shows both.
func running(values []int64) (out []float64) {
	sum := 0.0
	for _, v := range values {
		sum += float64(v)
		out = append(out, sum)
	}
	return out
}

// traceFigures are the block layer's sizes and depths where results were traced.
func traceFigures(b *stats.Benchmark, t *stats.Table) (out []Figure) {
	for _, what := range []struct{ caption, label, key string }{
		{"Sizes of block requests", "size of a request (KiB, from)", "bssplit_%s_kb"},
		{"Queue depth at dispatch", "requests in flight (from)", "qd_%s"},
		{"Time of block requests at the device", "dispatch to completion (µs, from)", "d2c_%s_us"},
	} {
		c := Chart{X: Axis{Label: what.label},
			Y: Axis{Label: "share of the requests (%)", Zero: true}}
		var parts [][]stats.Bucket
		for run := range t.Runs {
			for _, op := range []string{"read", "write"} {
				if list, _ := stats.TraceOctaves(b.Trials[run],
					fmt.Sprintf(what.key, op)); len(list) > 0 {
					c.Bars = append(c.Bars, Bars{Name: runName(t, run, op), Colour: len(parts)})
					parts = append(parts, list)
				}
			}
		}
		// Octaves side by side: a run that has no request of a size has a bar of no height there.
		lows, shares := stats.Shares(parts, stats.Bucket.From)
		for i, low := range lows {
			c.X.Ticks = append(c.X.Ticks, Tick{At: float64(i), Label: fmt.Sprint(low)})
		}
		for i := range c.Bars {
			for _, share := range shares[i] {
				c.Bars[i].Y = append(c.Bars[i].Y, 100*share)
			}
		}
		out = append(out, figureOf(what.caption+", all trials", c)...)
	}
	return out
}

// blockFigures are the block hit ratio beside the ideal one, in each interval and from the
// beginning. A policy is as good as the gap between the two lines is small.
func blockFigures(typical []trial, t *stats.Table) (out []Figure) {
	y := Axis{Label: "blocks hit (share of those asked for)", Min: 0, Max: 1}
	interval, soFar := Chart{X: overTime, Y: y}, Chart{X: overTime, Y: y}
	for _, k := range typical {
		r := stats.BlockRatios(k.Result.Timeline, mostPoints)
		if r == nil {
			continue
		}
		add := func(c *Chart, values ...[]float64) {
			for i, v := range values {
				l := lineOf(t, k.run, i, []string{"hit ratio", "ideal"}[i])
				l.X, l.Y = r.At, v
				c.Lines = append(c.Lines, l)
			}
		}
		add(&interval, r.Hit, r.Ideal)
		add(&soFar, r.HitSoFar, r.IdealSoFar)
	}
	return append(figureOf("Block hit ratio in each interval, median trial", interval),
		figureOf("Block hit ratio so far, median trial", soFar)...)
}

// autoscalingFigures are the rounds of an autoscaler: who ran, how saturated the storage was, and
// what it moved.
func autoscalingFigures(typical []trial, t *stats.Table) (out []Figure) {
	var who, saturation, rate []Line
	for _, k := range typical {
		rounds := k.Result.Summary.AutoscalingStats
		if len(rounds) == 0 {
			continue
		}
		add := func(to *[]Line, what string, i int, of func(result.Round) float64) {
			l := lineOf(t, k.run, i, what)
			l.Step = true
			from := 0.0
			for _, r := range rounds { // each value held during its round
				l.add(from, of(r))
				from = r.AtS
			}
			l.add(from, of(rounds[len(rounds)-1]))
			*to = append(*to, l)
		}
		add(&who, "users", 0, func(r result.Round) float64 { return float64(r.Users) })
		add(&who, "workers", 1, func(r result.Round) float64 { return float64(r.Workers) })
		add(&who, "goroutines", 2, func(r result.Round) float64 { return float64(r.Goroutines) })
		add(&saturation, "saturation", 0,
			func(r result.Round) float64 { return 100 * orNaN(r.Saturation) })
		// What it aims at is drawn beside what it reached.
		if target, ok := saturationTarget(k.Record); ok {
			add(&saturation, "target", 1, func(result.Round) float64 { return 100 * target })
		}
		add(&rate, "read and written", 0, func(r result.Round) float64 { return r.BytesPerSecond })
	}
	out = append(out, figureOf("Users, workers and goroutines in each round, median trial",
		Chart{X: overTime, Y: Axis{Label: "how many (of each)", Zero: true}, Lines: who})...)
	out = append(out, figureOf("Saturation at the end of each round, median trial",
		Chart{X: overTime, Y: Axis{Label: "saturation (%)", Min: 0, Max: 105},
			Lines: saturation})...)
	return append(out, inBytes("Storage rate of each round, median trial", "bandwidth (%s/s)",
		rate)...)
}

// saturationTarget is what an autoscaler of latency aims at. The parameter is a text, and of no
// meaning in the other mode.
func saturationTarget(rec *load.Record) (float64, bool) {
	s := rec.Result.Summary.AutoscalingSummary
	if s == nil || s.Mode != result.AutoscaleQoS {
		return 0, false
	}
	target, err := strconv.ParseFloat(fmt.Sprint(rec.Parameter("target-saturation")), 64)
	return target, err == nil
}
