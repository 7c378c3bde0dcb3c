package view

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"gonum.org/v1/gonum/floats"

	"kvbench/kvbench/result"
	"kvbench/tools/load"
	"kvbench/tools/stats"
)

// mostPoints is the largest number of points of a line over time. Neighbouring intervals are summed to
// stay below it.
const mostPoints = 400

// overTime is the X axis of the window. It begins when the window opens, after the warm-up.
var overTime = Axis{Label: "time in the window (s)", Zero: true}

// inBytes scales all lines of the chart to the binary unit of the largest value, and puts the unit into
// the label.
func (c *Chart) inBytes() {
	most := 1.0
	for _, l := range c.Lines {
		for _, v := range l.Y {
			if v > most { // false for a gap (NaN)
				most = v
			}
		}
	}
	thousands := min(max(1, int(math.Log2(most)/10)), 4)
	for _, l := range c.Lines {
		floats.Scale(math.Ldexp(1, -10*thousands), l.Y)
	}
	for _, b := range c.Bands {
		floats.Scale(math.Ldexp(1, -10*thousands), b.Lo)
		floats.Scale(math.Ldexp(1, -10*thousands), b.Hi)
	}
	c.Y.Label = fmt.Sprintf(c.Y.Label, []string{"B", "KiB", "MiB", "GiB", "TiB"}[thousands])
}

// tierFigures returns one figure per tier, with lines of the median trial of each run. Series that are
// all 0 are left out. A band has the minimum and the maximum over all trials of the run in each
// interval, because a stall in one trial is not typical of the drive.
func tierFigures(b *stats.Benchmark, typical []trial, t *stats.Table, what, label string,
	step bool, names []string, of func(tl *result.Timeline, level string) [][]float64,
) (out []Chart) {
	for _, level := range Levels {
		c := Chart{Title: what + " of the " + level + " tier over time, median trial",
			X: overTime, Time: true,
			Y: Axis{Label: label, Zero: true}}
		for _, k := range typical {
			tl := k.Result.Timeline
			if tl == nil || tl.IntervalNS <= 0 {
				continue
			}
			for i, values := range of(tl, level) {
				if !slices.ContainsFunc(values, func(v float64) bool { return v > 0 }) {
					continue
				}
				l := lineOf(t, k.run, i, names[i])
				l.Step = step
				l.series(tl, values)
				c.Lines = append(c.Lines, l)
				if band, ok := bandOf(b.Trials[k.run], tl.IntervalNS,
					func(tl *result.Timeline) []float64 { return of(tl, level)[i] }); ok {
					band.Name, band.Run, band.Colour, band.Step = l.Name, l.Run, l.Colour, l.Step
					c.Bands = append(c.Bands, band)
				}
			}
		}
		if len(c.Bands) > 0 {
			c.Title += "; shaded: all trials"
		}
		c.inBytes()
		out = append(out, c)
	}
	return out
}

// series appends one point per interval of a timeline, at the beginning of the interval.
func (l *Line) series(tl *result.Timeline, values []float64) {
	for i, v := range values {
		l.add(float64(i)*float64(tl.IntervalNS)/1e9, v)
	}
}

// bandOf returns the minimum and the maximum over the trials with this interval length. ok is false with
// fewer than two such trials.
func bandOf(trials []*load.Record, interval int64,
	of func(*result.Timeline) []float64) (band Band, ok bool) {
	n := 0
	for _, rec := range trials {
		if rec.Result == nil || rec.Result.Timeline == nil ||
			rec.Result.Timeline.IntervalNS != interval {
			continue
		}
		n++
		for j, v := range of(rec.Result.Timeline) {
			if j == len(band.X) {
				band.X = append(band.X, float64(j)*float64(interval)/1e9)
				band.Lo, band.Hi = append(band.Lo, v), append(band.Hi, v)
			} else if !math.IsNaN(v) {
				// The first value may be a gap (NaN).
				if !(v >= band.Lo[j]) {
					band.Lo[j] = v
				}
				if !(v <= band.Hi[j]) {
					band.Hi[j] = v
				}
			}
		}
	}
	return band, n > 1
}

// loadFigures show queued, in-flight and completed requests of results that have requests.
func loadFigures(typical []trial, t *stats.Table) []Chart {
	waiting := Chart{Title: "Requests queued and in flight, median trial", X: overTime, Time: true,
		Y: Axis{Label: "how many (requests)", Zero: true}}
	done := Chart{Title: "Requests completed over time, median trial", X: overTime, Time: true,
		Y: Axis{Label: "rate (requests/s)", Zero: true}}
	for _, k := range typical {
		tl := k.Result.Timeline
		if tl == nil || tl.IntervalNS <= 0 || !Requests(k.Result) {
			continue
		}
		queued, inFlight := lineOf(t, k.run, 0, "queued"), lineOf(t, k.run, 1, "in flight")
		queued.series(tl, stats.Known(tl.Queued))
		inFlight.series(tl, stats.Known(tl.InFlight))
		rate := lineOf(t, k.run, 0, "completed")
		rate.Step = true
		rate.series(tl, stats.Rates(tl, tl.Requests))
		waiting.addLine(queued)
		waiting.addLine(inFlight)
		done.addLine(rate)
	}
	return []Chart{waiting, done}
}

// bandwidthFigures show bandwidth over time of tiers that moved bytes.
func bandwidthFigures(b *stats.Benchmark, typical []trial, t *stats.Table) []Chart {
	return tierFigures(b, typical, t, "Bandwidth", "bandwidth (%s/s)", true, ops,
		func(tl *result.Timeline, level string) [][]float64 {
			return [][]float64{stats.Rates(tl, tl.ReadBytes[level]),
				stats.Rates(tl, tl.WriteBytes[level])}
		})
}

// fillFigures show used, evicted and demoted bytes of the tiers. A benchmark whose tier is full from the
// first second measures eviction.
func fillFigures(b *stats.Benchmark, typical []trial, t *stats.Table) []Chart {
	return tierFigures(b, typical, t, "Fill", "bytes (%s)", false,
		[]string{"used", "evicted so far", "demoted so far"},
		func(tl *result.Timeline, level string) [][]float64 {
			return [][]float64{stats.Known(tl.TierUsedBytes[level]),
				running(tl.EvictedBytes[level]), running(tl.DemotedBytes[level])}
		})
}

// orNaN returns the value, or NaN if it is unknown.
func orNaN[N int64 | float64](v *N) float64 {
	if v == nil {
		return math.NaN()
	}
	return float64(*v)
}

// running returns running sums. The curve shows the total, and a bend shows when the rate changed.
func running(values []int64) (out []float64) {
	sum := 0.0
	for _, v := range values {
		sum += float64(v)
		out = append(out, sum)
	}
	return out
}

// Overview compares the rates of all benchmarks. Only the workbook shows it: the page has the rates as
// bars in its first table.
func Overview(t *stats.Table) Chart {
	c := Chart{Title: "Bandwidth of each benchmark, median of the trials",
		X: Axis{Label: "benchmark"}, Y: Axis{Label: "bandwidth (GiB/s)", Zero: true}, Bars: true}
	for i, b := range t.Benchmarks {
		c.X.Ticks = append(c.X.Ticks, Tick{At: float64(i), Label: b.Name})
	}
	for run := range t.Runs {
		for i, op := range ops {
			l := lineOf(t, run, i, op)
			l.Colour, l.Dash = len(c.Lines)%Colours, 0
			for _, b := range t.Benchmarks {
				rate := math.NaN()
				if cell := b.Cell(op+"-B/s", run); cell.N() > 0 {
					rate = cell.Summary.Center / (1 << 30)
				}
				l.Y = append(l.Y, rate)
			}
			if slices.ContainsFunc(l.Y, c.Y.Shows) {
				c.Lines = append(c.Lines, l)
			}
		}
	}
	return c
}

// nines are the ticks of the percentile axis: 90, 99, 99.9 and so on have equal distances.
var nines = []Tick{{At: 0, Label: "min"}, {At: stats.MedianPlace, Label: "50"},
	{At: 1, Label: "90"}, {At: stats.P95Place, Label: "95"}, {At: 2, Label: "99"},
	{At: 3, Label: "99.9"},
	{At: 4, Label: "99.99"}, {At: 5, Label: "99.999"}}

// latencyFigures are percentile curves over all trials, of each tier's operations and of requests.
func latencyFigures(b *stats.Benchmark, typical []trial, t *stats.Table) (out []Chart) {
	draw := func(what string, keys, names []string) {
		c := Chart{Title: "Latency of " + what + ", all trials",
			X: Axis{Label: "percentile (%)", Ticks: nines},
			Y: Axis{Label: "latency (ms, log scale)", Log: true}}
		for run := range t.Runs {
			for i, key := range keys {
				l := lineOf(t, run, i, names[i])
				// All trials together: the tail needs every sample.
				places, values := stats.Percentiles(stats.Merge(b.Trials[run], key))
				for i, v := range values {
					l.add(places[i], max(v, 1)/1e6)
				}
				if len(l.X) > 1 { // else too few samples for any percentile
					c.Lines = append(c.Lines, l)
				}
			}
		}
		out = append(out, c)
	}
	for _, level := range Levels {
		draw("one entry on the "+level+" tier",
			[]string{level + "_read", level + "_write"}, ops)
	}
	if slices.ContainsFunc(typical, func(k trial) bool { return Requests(k.Result) }) {
		draw("requests", []string{"request_end_to_end", "request_storage"},
			[]string{"end to end", "storage I/O"})
	}
	return out
}

// blockFigures show the block hit ratio and the ideal one, per interval and since the beginning. The gap
// between the lines is the loss of the eviction policy.
func blockFigures(typical []trial, t *stats.Table) []Chart {
	y := Axis{Label: "blocks hit (share)", Range: Values{0, 1}}
	interval := Chart{Title: "Block hit ratio in each interval, median trial", X: overTime, Y: y,
		Time: true}
	soFar := Chart{Title: "Block hit ratio so far, median trial", X: overTime, Y: y, Time: true}
	for _, k := range typical {
		r := k.Result.Timeline.BlockRatios(mostPoints)
		if r == nil {
			continue
		}
		hit, ideal := lineOf(t, k.run, 0, "hit ratio"), lineOf(t, k.run, 1, "ideal")
		hit.X, ideal.X = r.At, r.At
		hit.Y, ideal.Y = r.Hit, r.Ideal
		interval.Lines = append(interval.Lines, hit, ideal)
		hit.Y, ideal.Y = r.HitSoFar, r.IdealSoFar
		soFar.Lines = append(soFar.Lines, hit, ideal)
	}
	return []Chart{interval, soFar}
}

// roundSeries is one value of each round of the autoscaler.
type roundSeries struct {
	name  string
	value func(result.Round) float64
}

// rounds are three charts of an autoscaler: users and workers, saturation of the storage, and bytes.
// Their units differ.
var rounds = []struct {
	title  string
	y      Axis
	series []roundSeries
}{
	{"Users, workers and goroutines in", Axis{Label: "how many (of each)", Zero: true},
		[]roundSeries{
			{"users", func(r result.Round) float64 { return float64(r.Users) }},
			{"workers", func(r result.Round) float64 { return float64(r.Workers) }},
			{"goroutines", func(r result.Round) float64 { return float64(r.Goroutines) }}}},
	{"Saturation at the end of", Axis{Label: "saturation (%)", Range: Values{0, 105}},
		[]roundSeries{
			{"saturation", func(r result.Round) float64 { return 100 * orNaN(r.Saturation) }}}},
	{"Storage rate of", Axis{Label: "bandwidth (%s/s)", Zero: true}, []roundSeries{
		{"read and written", func(r result.Round) float64 { return r.BytesPerSecond }}}},
}

// autoscalingFigures show the rounds of an autoscaler.
func autoscalingFigures(typical []trial, t *stats.Table) (charts []Chart) {
	for i, chart := range rounds {
		c := Chart{Title: chart.title + " each round, median trial", X: overTime, Y: chart.y,
			Time: true}
		for _, k := range typical {
			list, series := k.Result.Rounds(), chart.series
			if len(list) == 0 {
				continue
			}
			// The saturation chart also has the target.
			if target, ok := saturationTarget(k.Record); ok && i == 1 {
				series = append(slices.Clip(series),
					roundSeries{"target", func(result.Round) float64 { return 100 * target }})
			}
			for what, s := range series {
				l := lineOf(t, k.run, what, s.name)
				for _, r := range list {
					l.hold(s.value(r), r.AtS)
				}
				c.Lines = append(c.Lines, l)
			}
		}
		charts = append(charts, c)
	}
	charts[2].inBytes()
	return charts
}

// saturationTarget returns the target of the latency autoscaler, as a share. The other mode has none.
func saturationTarget(rec *load.Record) (float64, bool) {
	s := rec.Result.Autoscaler
	if s == nil || s.Mode != result.AutoscaleQoS {
		return 0, false
	}
	target, err := strconv.ParseFloat(fmt.Sprint(rec.Parameter("target-saturation")), 64)
	return target, err == nil
}

// firstTokenFigures show the time to load the cached part of a prompt and the time to compute it, by
// number of tokens. Loading is faster where its line is lower; the lines cross at the break-even length.
// Loading times were measured under load, so only measured lengths have points.
func firstTokenFigures(typical []trial, t *stats.Table) []Chart {
	c := Chart{Title: "Loading or computing a prompt, by its length, median trial",
		X: Axis{Label: "tokens (log scale)", Log: true},
		Y: Axis{Label: "time (ms, log scale)", Log: true}}
	for _, k := range typical {
		f := k.Result.FirstToken
		if f == nil || len(f.Loading) == 0 {
			continue
		}
		half, slow := lineOf(t, k.run, 0, "loading"), lineOf(t, k.run, 1, "loading p95")
		compute := lineOf(t, k.run, 2, "computing")
		half.Dots, slow.Dots = true, true
		for _, x := range f.Loading {
			if x.P50NS != nil {
				half.add(x.Tokens, *x.P50NS/1e6)
			}
			if x.P95NS != nil {
				slow.add(x.Tokens, *x.P95NS/1e6)
			}
		}
		for _, x := range lengths(f) {
			compute.add(x, 1e3*(f.Prefill.PerToken*x+f.Prefill.PerTokenSquare*x*x))
		}
		c.Lines = append(c.Lines, half)
		if len(slow.X) > 0 { // else too few loads for it
			c.Lines = append(c.Lines, slow)
		}
		c.Lines = append(c.Lines, compute)
	}
	return []Chart{c}
}

// lengths returns the lengths at which computing is drawn: from a quarter of the shortest loaded length
// (or from the break-even length if that is shorter) to the longest, in steps of factor 2.
func lengths(f *result.FirstToken) (list []float64) {
	least, most := f.Loading[0].Tokens/4, f.Loading[len(f.Loading)-1].Tokens
	if b := f.BreakEven.P50; b != nil && b.Tokens != nil && !b.Extrapolated {
		least, most = min(least, float64(*b.Tokens)), max(most, float64(*b.Tokens))
	}
	for x := max(1, least); x < most; x *= 2 {
		list = append(list, x)
	}
	return append(list, most)
}
