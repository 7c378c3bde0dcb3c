package html

import (
	"fmt"
	"html/template"
	"math"
	"slices"

	"kvbench/kvbench/result"
	"kvbench/tiers"
	"kvbench/tools/load"
	"kvbench/tools/stats"
)

// figureOf draws a chart, or nothing when it has no numbers.
func figureOf(caption string, c Chart) []figure {
	c.Title = caption
	if svg := c.SVG(); svg != "" {
		return []figure{{caption, template.HTML(svg)}}
	}
	return nil
}

// runName is a legend's prefix; with one run it says nothing.
func runName(t *stats.Table, run int, what string) string {
	if len(t.Runs) < 2 {
		return what
	}
	return t.Labels[run] + " " + what
}

// levels from fast to slow.
func levels() (out []string) {
	for l := range tiers.NumKinds {
		out = append(out, l.String())
	}
	return out
}

// colour of a series: of its run where there are several, else of what it shows.
func colour(t *stats.Table, run, what int) int {
	if len(t.Runs) > 1 {
		return run
	}
	return what
}

// dash tells apart what has the colour of its run in common.
func dash(t *stats.Table, what int) int {
	if len(t.Runs) > 1 {
		return what
	}
	return 0
}

// byteUnit is the binary unit that suits the largest value.
func byteUnit(most float64) (float64, string) {
	switch {
	case most >= 1<<40:
		return 1 << 40, "TiB"
	case most >= 1<<30:
		return 1 << 30, "GiB"
	case most >= 1<<20:
		return 1 << 20, "MiB"
	}
	return 1 << 10, "KiB"
}

// bandwidthPlots is bandwidth over time: one plot per tier that moved bytes, of the median trial of each run.
func bandwidthPlots(typical []*load.Record, t *stats.Table) (out []figure) {
	for _, level := range levels() {
		var lines []Line
		most := 0.0
		for run, rec := range typical {
			if rec == nil || rec.Result.Timeline == nil || rec.Result.Timeline.IntervalNS <= 0 {
				continue
			}
			tl := rec.Result.Timeline
			for i, op := range []struct {
				name  string
				bytes []int64
			}{{"read", tl.ReadBytes[level]}, {"write", tl.WriteBytes[level]}} {
				if !slices.ContainsFunc(op.bytes, func(n int64) bool { return n > 0 }) {
					continue
				}
				l := Line{Name: runName(t, run, op.name), Colour: colour(t, run, i), Dash: dash(t, i), Step: true}
				for k, n := range op.bytes {
					length := tl.IntervalNS
					if k == len(op.bytes)-1 && tl.LastNS > 0 {
						if length = tl.LastNS; length < tl.IntervalNS/2 && k > 0 {
							break // too short an end to speak of a rate
						}
					}
					v := float64(n) / (float64(length) / 1e9)
					l.X, l.Y = append(l.X, float64(k)*float64(tl.IntervalNS)/1e9), append(l.Y, v)
					most = max(most, v)
				}
				lines = append(lines, l)
			}
		}
		by, unit := byteUnit(most)
		for _, l := range lines {
			for i := range l.Y {
				l.Y[i] /= by
			}
		}
		out = append(out, figureOf("Bandwidth of the "+level+" tier over time, median trial", Chart{
			X: Axis{Label: "time in the window (s)", Zero: true}, Y: Axis{Label: "bandwidth (" + unit + "/s)", Zero: true}, Lines: lines})...)
	}
	return out
}

// nines are the ticks of a percentile axis.
var nines = []Tick{{At: 0, Label: "min"}, {At: stats.Nines(0.5), Label: "50"}, {At: 1, Label: "90"}, {At: 2, Label: "99"},
	{At: 3, Label: "99.9"}, {At: 4, Label: "99.99"}, {At: 5, Label: "99.999"}}

// latencyPlots are percentile curves over all trials: of each tier's operations, and of requests.
func latencyPlots(b *stats.Benchmark, t *stats.Table) (out []figure) {
	draw := func(caption, label string, keys []struct{ key, name string }) {
		c := Chart{X: Axis{Label: "percentile (%)", Ticks: nines}, Y: Axis{Label: label, Log: true}}
		for run := range t.Runs {
			for i, k := range keys {
				h := stats.Merge(b.Trials[run], k.key)
				if h.Count() == 0 {
					continue
				}
				l := Line{Name: runName(t, run, k.name), Colour: colour(t, run, i), Dash: dash(t, i)}
				for _, p := range stats.Percentiles(h) {
					l.X, l.Y = append(l.X, stats.Nines(p.Share)), append(l.Y, max(p.Value, 1)/1e6)
				}
				if len(l.X) > 1 { // else too few samples for any percentile
					c.Lines = append(c.Lines, l)
				}
			}
		}
		out = append(out, figureOf(caption, c)...)
	}
	for _, level := range levels() {
		draw("Latency of one entry on the "+level+" tier, all trials", "latency (ms, log scale)",
			[]struct{ key, name string }{{level + "_read", "read"}, {level + "_write", "write"}})
	}
	if requests(b) {
		draw("Latency of requests, all trials", "latency (ms, log scale)",
			[]struct{ key, name string }{{"request_end_to_end", "end to end"}, {"request_storage", "storage I/O"}})
	}
	return out
}

// requests says whether the benchmark runs requests, rather than single operations.
func requests(b *stats.Benchmark) bool {
	for _, trials := range b.Trials {
		for _, rec := range trials {
			if rec.Result != nil {
				return rec.Result.CompletionUnit != result.UnitOperation
			}
		}
	}
	return false
}

// fillPlots shows how full the tiers were, and what was evicted or demoted so far.
func fillPlots(typical []*load.Record, t *stats.Table) (out []figure) {
	for _, level := range levels() {
		var lines []Line
		most := 0.0
		for run, rec := range typical {
			if rec == nil || rec.Result.Timeline == nil {
				continue
			}
			tl := rec.Result.Timeline
			add := func(what string, i int, values []float64) {
				if !slices.ContainsFunc(values, func(v float64) bool { return v > 0 }) {
					return
				}
				l := Line{Name: runName(t, run, what), Colour: colour(t, run, i), Dash: dash(t, i), Y: values}
				for k, v := range values {
					l.X = append(l.X, float64(k)*float64(tl.IntervalNS)/1e9)
					if !math.IsNaN(v) {
						most = max(most, v)
					}
				}
				lines = append(lines, l)
			}
			var used []float64
			for _, v := range tl.TierUsedBytes[level] {
				if v == nil {
					used = append(used, math.NaN())
				} else {
					used = append(used, float64(*v))
				}
			}
			add("used", 0, used)
			add("evicted so far", 1, running(tl.EvictedBytes[level]))
			add("demoted so far", 2, running(tl.DemotedBytes[level]))
		}
		by, unit := byteUnit(most)
		for _, l := range lines {
			for i := range l.Y {
				l.Y[i] /= by
			}
		}
		out = append(out, figureOf("Fill of the "+level+" tier over time, median trial", Chart{
			X: Axis{Label: "time in the window (s)", Zero: true}, Y: Axis{Label: "bytes (" + unit + ")", Zero: true}, Lines: lines})...)
	}
	return out
}

func running(values []int64) (out []float64) {
	sum := 0.0
	for _, v := range values {
		sum += float64(v)
		out = append(out, sum)
	}
	return out
}

// tracePlots are the block layer's sizes and depths where results were traced.
func tracePlots(b *stats.Benchmark, t *stats.Table) (out []figure) {
	for _, what := range []struct{ caption, label, read, write string }{
		{"Sizes of block requests", "size of a request (KiB, from)", "bssplit_read_kb", "bssplit_write_kb"},
		{"Queue depth at dispatch", "requests in flight (from)", "qd_read", "qd_write"},
		{"Time of block requests at the device", "dispatch to completion (µs, from)", "d2c_read_us", "d2c_write_us"},
	} {
		type part struct {
			name    string
			buckets []stats.Bucket
		}
		var parts []part
		lo, hi := math.Inf(1), 0.0
		for run := range t.Runs {
			for _, k := range []struct{ key, name string }{{what.read, "read"}, {what.write, "write"}} {
				if list, _ := stats.TraceOctaves(b.Trials[run], k.key); len(list) > 0 {
					parts = append(parts, part{runName(t, run, k.name), list})
					lo, hi = min(lo, max(1, list[0].Low)), max(hi, list[len(list)-1].Low)
				}
			}
		}
		c := Chart{X: Axis{Label: what.label}, Y: Axis{Label: "share of the requests (%)", Zero: true}}
		for i, p := range parts {
			bars, total := Bars{Name: p.name, Colour: i}, int64(0)
			for _, k := range p.buckets {
				total += k.Count
			}
			for low := lo; low <= hi; low *= 2 {
				at := int64(0)
				for _, k := range p.buckets {
					if max(1, k.Low) == low {
						at += k.Count
					}
				}
				bars.Y = append(bars.Y, 100*float64(at)/float64(total))
			}
			c.Bars = append(c.Bars, bars)
		}
		for i, low := 0, lo; low <= hi; i, low = i+1, low*2 {
			c.X.Ticks = append(c.X.Ticks, Tick{At: float64(i), Label: fmt.Sprint(low)})
		}
		out = append(out, figureOf(what.caption+", all trials", c)...)
	}
	return out
}
