package view

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
	"kvbench/tools/load"
	"kvbench/tools/stats"
	"kvbench/tracing"
)

// figure is a figure that any benchmark may have. lines returns the lines of a run, in the order of
// their colours. Lines without a value are left out, and so are figures without lines.
type figure struct {
	title string
	x, y  Axis
	lines func(s subject) []Line
}

// subject has what a figure shows of a run: all trials, and the trial that represents the run, which is
// nil without a result file.
type subject struct {
	run    int
	trials []*load.Record
	median *load.Record
}

// figures are the figures in their order on the page. Figures of special runs come first, such as a knee
// or autoscaling: they are the reason for such a run.
var figures = slices.Concat([]figure{
	{"Rate against requests in flight, by the size of a request, median trial", inFlight,
		Axis{Label: "rate (%s/s)", Zero: true},
		kneeLines(func(p result.KneePoint) float64 { return p.Rate })},
	{"p99 against requests in flight, by the size of a request, median trial", inFlight,
		Axis{Label: "p99 (ms, log scale)", Log: true},
		kneeLines(func(p result.KneePoint) float64 { return orNaN(p.P99NS) / 1e6 })},
	{"Users, workers and goroutines in each round, median trial", overTime,
		Axis{Label: "how many (of each)", Zero: true},
		ofRounds([]string{"users", "workers", "goroutines"},
			func(_ *load.Record, r result.Round) []float64 {
				return []float64{float64(r.Users), float64(r.Workers), float64(r.Goroutines)}
			})},
	{"Saturation at the end of each round, median trial", overTime,
		Axis{Label: "saturation (%)", Range: Values{0, 105}},
		ofRounds([]string{"saturation", "target"},
			func(rec *load.Record, r result.Round) []float64 {
				return []float64{100 * orNaN(r.Saturation), 100 * saturationTarget(rec)}
			})},
	{"Storage rate of each round, median trial", overTime,
		Axis{Label: "bandwidth (%s/s)", Zero: true},
		ofRounds([]string{"read and written"},
			func(_ *load.Record, r result.Round) []float64 { return []float64{r.BytesPerSecond} })},
	{"Loading or computing a prompt, by its length, median trial",
		Axis{Label: "tokens (log scale)", Log: true},
		Axis{Label: "time (ms, log scale)", Log: true}, ofMedian(loadingLines)},
	{"Block hit ratio in each interval, median trial", overTime, hitShare,
		ofBlocks(func(b *result.BlockRatios) (hit, ideal []float64) { return b.Hit, b.Ideal })},
	{"Block hit ratio so far, median trial", overTime, hitShare,
		ofBlocks(func(b *result.BlockRatios) (hit, ideal []float64) {
			return b.HitSoFar, b.IdealSoFar
		})},
}, timelineFigures(), latencyFigures(), traceFigures())

// draw makes the figures of a benchmark.
func draw(b *stats.Benchmark, subjects []subject, t *stats.Table) []Chart {
	var charts []Chart
	for _, f := range figures {
		c := Chart{Title: f.title, X: f.x, Y: f.y, Time: f.x.Label == overTime.Label}
		for _, s := range subjects {
			c.add(t, s.run, f.lines(s)...)
		}
		for _, l := range c.Lines {
			if !strings.Contains(c.Title, l.point) {
				c.Title += "; " + l.point
			}
		}
		c.inBytes()
		charts = append(charts, c)
	}
	return shown(b.Simulated, append(charts, courseFigures(subjects, t)...)...)
}

// inFlight is the X axis of the grid of a knee.
var inFlight = Axis{Label: "requests in flight (log scale)", Log: true}

// overTime is the X axis of the window. It begins when the window opens, after the warm-up.
var overTime = Axis{Label: "time in the window (s)", Zero: true}

// ofMedian makes lines of the trial that represents a run.
func ofMedian(lines func(*result.Result) []Line) func(subject) []Line {
	return func(s subject) []Line {
		if s.median == nil {
			return nil
		}
		return lines(s.median.Result)
	}
}

// ofRounds makes a line of each value of the rounds of an autoscaler.
func ofRounds(names []string, values func(*load.Record, result.Round) []float64,
) func(subject) []Line {
	return func(s subject) []Line {
		if s.median == nil || s.median.Result.Autoscaler == nil {
			return nil
		}
		lines := make([]Line, len(names))
		for _, r := range s.median.Result.Autoscaler.History {
			for i, v := range values(s.median, r) {
				lines[i].Name = names[i]
				lines[i].hold(v, r.AtS)
			}
		}
		return lines
	}
}

// saturationTarget returns the target of the latency autoscaler, as a share. The other mode has none.
func saturationTarget(rec *load.Record) float64 {
	target, err := strconv.ParseFloat(fmt.Sprint(rec.Parameter("target-saturation")), 64)
	if rec.Result.Autoscaler.Mode != result.AutoscaleQoS || err != nil {
		return math.NaN()
	}
	return target
}

// hitShare is the Y axis of block hit ratios. The gap between a ratio and the ideal one is the loss of
// the eviction policy.
var hitShare = Axis{Label: "blocks hit (share)", Range: Values{0, 1}}

// mostPoints is the largest number of points of a hit ratio over time. Neighbouring intervals are summed
// to stay below it.
const mostPoints = 400

func ofBlocks(ratios func(*result.BlockRatios) (hit, ideal []float64)) func(subject) []Line {
	return ofMedian(func(r *result.Result) []Line {
		b := r.Timeline.BlockRatios(mostPoints)
		if b == nil {
			return nil
		}
		hit, ideal := ratios(b)
		return []Line{{Name: "hit ratio", X: b.At, Y: hit}, {Name: "ideal", X: b.At, Y: ideal}}
	})
}

// loadingLines show the time to load the cached part of a prompt and the time to compute it, by number
// of tokens. Loading is faster where its line is lower; the lines cross at the break-even length. Loading
// times were measured under load, so only measured lengths have points.
func loadingLines(r *result.Result) []Line {
	f := r.FirstToken
	if f == nil || len(f.Loading) == 0 {
		return nil
	}
	half, slow := Line{Name: "loading", Dots: true}, Line{Name: "loading p95", Dots: true}
	compute := Line{Name: "computing"}
	for _, x := range f.Loading {
		half.add(x.Tokens, orNaN(x.P50NS)/1e6)
		slow.add(x.Tokens, orNaN(x.P95NS)/1e6)
	}
	// Computing is drawn from a quarter of the shortest loaded length, or from the break-even length.
	least, most := f.Loading[0].Tokens/4, f.Loading[len(f.Loading)-1].Tokens
	if b := f.BreakEven.P50; b != nil && b.Tokens != nil && !b.Extrapolated {
		least, most = min(least, float64(*b.Tokens)), max(most, float64(*b.Tokens))
	}
	cost := func(n float64) float64 {
		return 1e3 * (f.Prefill.PerToken*n + f.Prefill.PerTokenSquare*n*n)
	}
	for n := max(1, least); n < most; n *= 2 {
		compute.add(n, cost(n))
	}
	compute.add(most, cost(most))
	return []Line{half, slow, compute}
}

// kneeLines makes a line per request size of the grid of a knee. Above the knee the rate stays and the p99
// grows.
func kneeLines(value func(result.KneePoint) float64) func(subject) []Line {
	return ofMedian(func(r *result.Result) (lines []Line) {
		if r.PlainIO == nil || r.PlainIO.Knee == nil {
			return nil
		}
		for _, p := range slices.SortedFunc(slices.Values(r.PlainIO.Knee.Points),
			func(a, b result.KneePoint) int {
				return cmp.Or(cmp.Compare(a.RequestBytes, b.RequestBytes), a.InFlight-b.InFlight)
			}) {
			name := units.Bytes.Text(p.RequestBytes)
			if n := len(lines); n == 0 || lines[n-1].Name != name {
				lines = append(lines, Line{Name: name, Dots: true})
			}
			lines[len(lines)-1].add(float64(p.InFlight), value(p))
		}
		return lines
	})
}

// nines are the ticks of the percentile axis: 90, 99, 99.9 and so on have equal distances.
var nines = []Tick{{At: 0, Label: "min"}, {At: medianPlace, Label: "50"},
	{At: 1, Label: "90"}, {At: p95Place, Label: "95"}, {At: 2, Label: "99"},
	{At: 3, Label: "99.9"}, {At: 4, Label: "99.99"}, {At: 5, Label: "99.999"}}

// latencyFigures are percentile curves over all trials, because the tail needs every sample: of each
// tier's operations and of requests.
func latencyFigures() (list []figure) {
	curves := func(what string, keys, names []string) {
		list = append(list, figure{"Latency of " + what + ", all trials",
			Axis{Label: "percentile (%)", Ticks: nines},
			Axis{Label: "latency (ms, log scale)", Log: true},
			func(s subject) []Line {
				lines := make([]Line, len(keys))
				for i, key := range keys {
					lines[i].Name = names[i]
					places, values := percentiles(merged(s.trials, key))
					if len(values) > 1 { // else too few samples for any percentile
						for k, v := range values {
							lines[i].add(places[k], max(v, 1)/1e6)
						}
					}
				}
				return lines
			}})
	}
	for _, level := range Levels {
		curves("one entry on the "+level+" tier", []string{level + "_read", level + "_write"}, ops)
	}
	curves("requests", []string{"request_end_to_end", "request_storage"},
		[]string{"end to end", "storage I/O"})
	return list
}

// traceFigures are the kernel's histograms of traced results, over all trials: the share of the samples
// in each power of two.
func traceFigures() (list []figure) {
	for _, f := range []struct{ title, label, keys string }{
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
		list = append(list, figure{f.title + ", all trials", Axis{Label: f.label, Log: true},
			Axis{Label: "share of all (%)", Zero: true},
			func(s subject) (lines []Line) {
				for key := range strings.FieldsSeq(f.keys) {
					kind, ends, shares := traceShares(s.trials, key)
					l := Line{Name: kind.Title, Step: true}
					if len(ends) > 0 {
						l.add(ends[0]/4, 0) // so that each value is a bar
						for i, share := range shares {
							l.add(ends[i]/2, 100*share)
						}
						l.add(ends[len(ends)-1], 0)
					}
					lines = append(lines, l)
				}
				return lines
			}})
	}
	return list
}

// heatColour is grey, so that coloured lines stand out.
const heatColour = 7

// courseFigures show percentiles over time, of the run's own histograms and of the kernel's. With one run
// they also have a heat map: a mean over the window hides the second in which a drive was slow.
func courseFigures(subjects []subject, t *stats.Table) (out []Chart) {
	for _, follow := range []func(*load.Record, int) []followed{followCounted, followTraced} {
		for _, s := range subjects {
			if s.median == nil {
				continue
			}
			// Percentiles of a second each: shorter intervals mostly have too few values.
			seconds := int(s.median.Result.WindowNS / 1e9)
			coarse := follow(s.median, min(max(10, seconds), tracing.MostIntervals))
			for k, f := range follow(s.median, tracing.MostIntervals) {
				title := f.title + " over time, median trial"
				i := slices.IndexFunc(out, func(c Chart) bool { return c.Title == title })
				if i < 0 {
					i = len(out)
					out = append(out, Chart{Title: title, X: overTime, Time: true,
						Y: Axis{Label: f.label, Log: true}})
				}
				out[i].add(t, s.run, percentileLines(coarse[k])...)
				if len(t.Runs) == 1 {
					h := &Heat{Colour: heatColour, At: f.at, From: f.From}
					for _, counts := range f.Counts { // padded with 0 to all rows
						h.Counts = append(h.Counts, append(slices.Clone(counts),
							make([]int64, len(f.From)-len(counts))...))
					}
					out[i].Heat = h
				}
			}
		}
	}
	return out
}

// percentileLines returns a line per percentile, with one value per interval: the lower bound of a bucket of half
// an octave.
func percentileLines(f followed) (lines []Line) {
	for _, p := range []float64{0.5, 0.95, 0.99} {
		l := Line{Name: fmt.Sprintf("p%g, from", 100*p)}
		for j, end := range f.at {
			v, enough := f.Percentile(j, p)
			if !enough {
				v = math.NaN()
			}
			l.hold(v, end)
		}
		lines = append(lines, l)
	}
	return lines
}

// orNaN returns the value, or NaN if it is unknown.
func orNaN[N int64 | float64](v *N) float64 {
	if v == nil {
		return math.NaN()
	}
	return float64(*v)
}
