package html

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"kvbench/tools/stats"
)

// sweepView is one swept parameter of one benchmark as curves.
type sweepView struct {
	Title   string
	Knees   []string
	Figures []figure
}

// sweep is the points of a benchmark that differ in one key only.
type sweep struct {
	name string // with … for the key's value
	key  string
	at   []float64
	of   []*stats.Benchmark
}

// leastPoints of a sweep: two points are a comparison.
const leastPoints = 3

// findSweeps looks for keys with at least three numeric values while the rest of the name stays the same.
func findSweeps(t *stats.Table) (out []*sweep) {
	index := map[string]*sweep{}
	var order []string
	for _, b := range t.Benchmarks {
		keys, values := keyValues(b.Name)
		for _, k := range keys {
			v, ok := quantity(values[k])
			if !ok {
				continue
			}
			name := strings.Replace(b.Name, "/"+k+"="+values[k], "/"+k+"=…", 1)
			s := index[name]
			if s == nil {
				s = &sweep{name: name, key: k}
				index[name] = s
				order = append(order, name)
			}
			s.at, s.of = append(s.at, v), append(s.of, b)
		}
	}
	for _, name := range order {
		s := index[name]
		if len(s.at) < leastPoints {
			continue
		}
		by := make([]int, len(s.at))
		for i := range by {
			by[i] = i
		}
		slices.SortStableFunc(by, func(a, b int) int { return cmp.Compare(s.at[a], s.at[b]) })
		sorted := &sweep{name: s.name, key: s.key}
		for _, i := range by {
			sorted.at, sorted.of = append(sorted.at, s.at[i]), append(sorted.of, s.of[i])
		}
		out = append(out, sorted)
	}
	return out
}

// quantity reads a number with an optional size unit.
func quantity(s string) (float64, bool) {
	scale := 1.0
	for _, u := range []struct {
		suffix string
		scale  float64
	}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40}} {
		if rest, ok := strings.CutSuffix(s, u.suffix); ok {
			s, scale = rest, u.scale
		}
	}
	v, err := strconv.ParseFloat(s, 64)
	return v * scale, err == nil && !math.IsInf(v, 0) && !math.IsNaN(v)
}

func (p *page) sweeps(t *stats.Table) {
	for _, s := range findSweeps(t) {
		v := sweepView{Title: s.name}
		x := Axis{Label: s.key}
		if s.at[0] > 0 && s.at[len(s.at)-1]/s.at[0] >= 8 {
			x.Log = true
			x.Label += " (log scale)"
		}
		for i, at := range s.at {
			_, values := keyValues(s.of[i].Name)
			x.Ticks = append(x.Ticks, Tick{At: at, Label: values[s.key]})
		}
		bandwidth := Chart{X: x, Y: Axis{Label: "bandwidth (GiB/s)", Zero: true}}
		latency := Chart{X: x, Y: Axis{Label: "latency (ms, log scale)", Log: true}}
		for run := range t.Runs {
			for i, unit := range []string{"read-B/s", "write-B/s"} {
				l := s.line(unit, run, 1.0/(1<<30))
				if len(l.X) == 0 {
					continue
				}
				l.Name, l.Colour, l.Dash = runName(t, run, strings.TrimSuffix(unit, "-B/s")), colour(t, run, i), dash(t, i)
				bandwidth.Lines = append(bandwidth.Lines, l)
				if k, ok := knee(l.Y); ok {
					_, values := keyValues(s.of[slices.Index(s.at, l.X[k])].Name)
					text := fmt.Sprintf("%s: knee at %s=%s, %s GiB/s", l.Name, s.key, values[s.key], stats.Number(l.Y[k]))
					v.Knees = append(v.Knees, text)
					bandwidth.Marks = append(bandwidth.Marks, Mark{X: l.X[k], Text: "knee " + values[s.key]})
				}
			}
			for i, unit := range []string{"read-p95-sec", "write-p95-sec", "e2e-p95-sec"} {
				l := s.line(unit, run, 1e3)
				if len(l.X) > 0 {
					l.Name, l.Colour, l.Dash = runName(t, run, strings.TrimSuffix(unit, "-sec")), colour(t, run, i), dash(t, i)
					latency.Lines = append(latency.Lines, l)
				}
			}
		}
		bandwidth.Marks = firstOfEach(bandwidth.Marks)
		latency.Marks = bandwidth.Marks
		v.Figures = append(v.Figures, figureOf("Bandwidth against "+s.key+", median of the trials", bandwidth)...)
		v.Figures = append(v.Figures, figureOf("Latency against "+s.key+", median of the trials", latency)...)
		if s.of[0].Simulated {
			markFigures(v.Figures)
		}
		if len(v.Figures) > 0 {
			p.Sweeps = append(p.Sweeps, v)
		}
	}
}

// line is one metric of one run along the sweep.
func (s *sweep) line(unit string, run int, scale float64) Line {
	l := Line{Dots: true}
	for i, b := range s.of {
		if m := b.Metric(unit); m != nil && len(m.Cells[run].Values) > 0 {
			l.X, l.Y = append(l.X, s.at[i]), append(l.Y, m.Cells[run].Summary.Center*scale)
		}
	}
	return l
}

func firstOfEach(marks []Mark) (out []Mark) {
	for _, m := range marks {
		if !slices.ContainsFunc(out, func(o Mark) bool { return o.X == m.X }) {
			out = append(out, m)
		}
	}
	return out
}

// enough is the share of the highest bandwidth that the knee must reach.
const enough = 0.9

// knee is the least load that reaches nine tenths of the highest bandwidth: from there more load buys little. There is none
// where that is the first or the last point: the sweep does not show it.
func knee(y []float64) (int, bool) {
	if len(y) < leastPoints {
		return 0, false
	}
	k := slices.IndexFunc(y, func(v float64) bool { return v >= enough*slices.Max(y) })
	return k, k > 0 && k < len(y)-1
}
