package view

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"kvbench/kvbench/units"
	"kvbench/tools/stats"
)

// Sweep is one swept parameter of one benchmark as curves. Its knees are told in words above the
// figures: a reader looks for the load at which to stop.
type Sweep struct {
	Title   string
	Knees   []string
	Figures []Figure
}

// sweep is the points of a benchmark that differ in one key only.
type sweep struct {
	name   string // with … for the key's value
	key    string
	points []point
}

// point is one benchmark of a sweep and the value of its key, as a number and as written.
type point struct {
	at    float64
	label string
	of    *stats.Benchmark
}

// leastPoints of a sweep: two points are a comparison. A curve through two is a straight line.
const leastPoints = 3

// findSweeps looks for keys with at least three numeric values while the rest of the name stays the
// same.
func findSweeps(t *stats.Table) (out []*sweep) {
	for _, b := range t.Benchmarks {
		keys, values := keyValues(b.Name)
		for _, k := range keys {
			v, ok := quantity(values[k])
			if !ok {
				continue
			}
			// Two swept keys make two sets of sweeps: each value of one is a sweep of the other.
			name := strings.Replace(b.Name, "/"+k+"="+values[k], "/"+k+"=…", 1)
			i := slices.IndexFunc(out, func(s *sweep) bool { return s.name == name })
			if i < 0 {
				i = len(out)
				out = append(out, &sweep{name: name, key: k})
			}
			out[i].points = append(out[i].points, point{v, values[k], b})
		}
	}
	out = slices.DeleteFunc(out, func(s *sweep) bool { return len(s.points) < leastPoints })
	for _, s := range out {
		slices.SortStableFunc(s.points, func(a, b point) int { return cmp.Compare(a.at, b.at) })
	}
	return out
}

// quantity reads a number with an optional size unit. A key with other values, such as
// layout=slots, is no sweep: its values have no order.
func quantity(s string) (float64, bool) {
	if strings.HasSuffix(s, "iB") {
		n, err := units.ParseSize(s, 1)
		return float64(n), err == nil
	}
	v, err := strconv.ParseFloat(s, 64)
	return v, err == nil && !math.IsInf(v, 0) && !math.IsNaN(v)
}

// sweeps draws each against its key, on a logarithmic axis where the values span three octaves or
// more: sweeps mostly double.
func sweeps(t *stats.Table) (out []Sweep) {
	for _, s := range findSweeps(t) {
		v := Sweep{Title: s.name}
		x := Axis{Label: s.key}
		if first, last := s.points[0].at,
			s.points[len(s.points)-1].at; first > 0 && last/first >= 8 {
			x.Log = true
			x.Label += " (log scale)"
		}
		for _, p := range s.points {
			x.Ticks = append(x.Ticks, Tick{At: p.at, Label: p.label})
		}
		bandwidth := Chart{X: x, Y: Axis{Label: "bandwidth (GiB/s)", Zero: true}}
		// Bandwidth grows until the knee and latency from there on: the two figures belong
		// together.
		latency := Chart{X: x, Y: Axis{Label: "latency (ms, log scale)", Log: true}}
		for run := range t.Runs {
			for i, unit := range []string{"read-B/s", "write-B/s"} {
				l := lineOf(t, run, i, strings.TrimSuffix(unit, "-B/s"))
				if !s.along(&l, unit, run, 1.0/(1<<30)) {
					continue
				}
				bandwidth.Lines = append(bandwidth.Lines, l)
				// The knee of a run is marked once, though reads and writes may share it.
				if k, ok := knee(l.Y); ok {
					p := s.points[slices.IndexFunc(s.points,
						func(p point) bool { return p.at == l.X[k] })]
					v.Knees = append(v.Knees, fmt.Sprintf("%s: knee at %s=%s, %s GiB/s", l.Name,
						s.key, p.label, stats.Number(l.Y[k])))
					if !slices.ContainsFunc(bandwidth.Marks,
						func(m Mark) bool { return m.X == p.at }) {
						bandwidth.Marks = append(bandwidth.Marks,
							Mark{X: p.at, Text: "knee " + p.label})
					}
				}
			}
			for i, unit := range []string{"read-p95-sec", "write-p95-sec", "e2e-p95-sec"} {
				l := lineOf(t, run, i, strings.TrimSuffix(unit, "-sec"))
				if s.along(&l, unit, run, 1e3) {
					latency.Lines = append(latency.Lines, l)
				}
			}
		}
		latency.Marks = bandwidth.Marks
		v.Figures = append(figureOf("Bandwidth against "+s.key+", median of the trials", bandwidth),
			figureOf("Latency against "+s.key+", median of the trials", latency)...)
		if s.points[0].of.Simulated {
			markFigures(v.Figures)
		}
		if len(v.Figures) > 0 {
			out = append(out, v)
		}
	}
	return out
}

// along adds one metric of one run along the sweep, and says whether there is any of it.
func (s *sweep) along(l *Line, unit string, run int, scale float64) bool {
	l.Dots = true
	for _, p := range s.points {
		if c := p.of.Cell(unit, run); c.N() > 0 {
			l.add(p.at, c.Summary.Center*scale)
		}
	}
	return len(l.X) > 0
}

// enough is the share of the highest bandwidth that the knee must reach.
const enough = 0.9

// knee is the least load that reaches nine tenths of the highest bandwidth: from there more load
// buys little. There is none where that is the first or the last point: the sweep does not show it.
func knee(y []float64) (int, bool) {
	if len(y) < leastPoints {
		return 0, false
	}
	k := slices.IndexFunc(y, func(v float64) bool { return v >= enough*slices.Max(y) })
	return k, k > 0 && k < len(y)-1
}
