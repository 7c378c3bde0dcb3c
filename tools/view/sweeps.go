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

// Sweep is one swept parameter of one benchmark, as figures. Enough has the loads above which the
// bandwidth grows little.
type Sweep struct {
	Title   string   // the benchmark's name with … for the value of the key
	Enough  []string // for each line, the smallest load with 90 % of its maximum
	Figures []Chart

	key    string
	points []point
}

// point is one benchmark of a sweep and the value of its key, as a number and as written.
type point struct {
	at        float64
	label     string
	benchmark *stats.Benchmark
}

// leastPoints is the smallest number of points of a sweep. Two points are a comparison, not a curve.
const leastPoints = 3

// Sweeps returns the sweeps. A sweep is a key with at least three numeric values in benchmarks whose names
// are otherwise equal. Two swept keys make two sets of sweeps: one sweep of each key per value of the other
// key. Sweeps leaves out sweeps without figures.
func Sweeps(t *stats.Table) (out []Sweep) {
	for _, b := range t.Benchmarks {
		keys, values := keyValues(b.Name)
		for _, k := range keys {
			v, ok := quantity(values[k])
			if !ok {
				continue
			}
			name := strings.Replace(b.Name, "/"+k+"="+values[k], "/"+k+"=…", 1)
			i := slices.IndexFunc(out, func(s Sweep) bool { return s.Title == name })
			if i < 0 {
				i = len(out)
				out = append(out, Sweep{Title: name, key: k})
			}
			out[i].points = append(out[i].points, point{v, values[k], b})
		}
	}
	for i := range out {
		if s := &out[i]; len(s.points) >= leastPoints {
			slices.SortStableFunc(s.points, func(a, b point) int { return cmp.Compare(a.at, b.at) })
			s.draw(t)
		}
	}
	return slices.DeleteFunc(out, func(s Sweep) bool { return len(s.Figures) == 0 })
}

// quantity parses a number with an optional size unit. ok is false for other values, such as slots in
// layout=slots: they have no order, so the key is no sweep.
func quantity(s string) (float64, bool) {
	if strings.HasSuffix(s, "iB") {
		n, err := units.ParseSize(s, 1)
		return float64(n), err == nil
	}
	v, err := strconv.ParseFloat(s, 64)
	return v, err == nil && !math.IsInf(v, 0) && !math.IsNaN(v)
}

// sweepFigures are the figures of a sweep: medians of metrics against the values of the key.
var sweepFigures = []struct {
	title   string
	y       Axis
	metrics []string
	scale   float64
}{
	{"Bandwidth", Axis{Label: "bandwidth (GiB/s)", Zero: true},
		[]string{"read-B/s", "write-B/s"}, 1.0 / (1 << 30)},
	{"Latency", Axis{Label: "latency (ms, log scale)", Log: true},
		[]string{"read-p95-sec", "write-p95-sec", "e2e-p95-sec"}, 1e3},
	{"Hit ratio", Axis{Label: "found (share)", Zero: true},
		[]string{"hit-ratio", "token-hit-ratio", idealRatio}, 1},
}

// idealRatio is the hit ratio that an unlimited cache has for the same requests. It is not a metric of the
// benchmark line.
const idealRatio = "ideal"

// draw makes the figures of the sweep. The axis is logarithmic if the largest value is at least eight
// times the smallest, because the values of most sweeps double. Bandwidth grows up to some load. Above this
// load only the latency grows, so the figures mark the load.
func (s *Sweep) draw(t *stats.Table) {
	x := Axis{Label: s.key}
	if first, last := s.points[0].at, s.points[len(s.points)-1].at; first > 0 && last/first >= 8 {
		x.Log = true
		x.Label += " (log scale)"
	}
	for _, p := range s.points {
		x.Ticks = append(x.Ticks, Tick{At: p.at, Label: p.label})
	}
	var charts []Chart
	for _, f := range sweepFigures {
		c := Chart{Title: f.title + " against " + s.key + ", median of the trials", X: x, Y: f.y}
		for run := range t.Runs {
			var lines []Line
			for _, metric := range f.metrics {
				lines = append(lines, s.along(metric, run, f.scale))
			}
			c.add(t, run, lines...)
		}
		charts = append(charts, c)
	}
	// A capacity and the size of an entry or a request put no load on the storage.
	if !s.room() && !strings.HasSuffix(s.points[0].label, "iB") {
		charts[0].Marks = s.enough(charts[0].Lines)
		charts[1].Marks = charts[0].Marks
	}
	if s.room() { // the hit ratio by capacity is its purpose
		charts = []Chart{charts[2], charts[0], charts[1]}
	}
	// A percentile may have enough samples at one point only, which is no curve.
	charts = slices.DeleteFunc(charts, func(c Chart) bool {
		return !slices.ContainsFunc(c.Lines, func(l Line) bool { return len(l.X) > 1 })
	})
	s.Figures = shown(s.points[0].benchmark.Simulated, charts...)
}

// along returns a metric of one run at each point of the sweep.
func (s *Sweep) along(metric string, run int, scale float64) Line {
	name := strings.TrimSuffix(strings.TrimSuffix(metric, "-B/s"), "-sec")
	l := Line{Name: stats.Title(name), Dots: true}
	for _, p := range s.points {
		rec := MedianTrial(p.benchmark, run)
		if metric != idealRatio {
			if c := p.benchmark.Cell(metric, run); c.N() > 0 {
				l.add(p.at, c.Summary.Center*scale)
			}
		} else if rec != nil && rec.Result.BlockCache != nil {
			l.add(p.at, orNaN(rec.Result.BlockCache.IdealHitRatio))
		}
	}
	return l
}

// enough sets Enough, and returns a mark at each load with 90 % of a line's maximum. Several lines may
// share a mark.
func (s *Sweep) enough(lines []Line) (marks []Mark) {
	for _, l := range lines {
		k, ok := leastEnough(l.Y)
		if !ok {
			continue
		}
		at := slices.IndexFunc(s.points, func(p point) bool { return p.at == l.X[k] })
		label := s.points[at].label
		s.Enough = append(s.Enough, fmt.Sprintf("%s: 90 %% of the maximum at %s=%s, %s GiB/s",
			l.Name, s.key, label, units.Number.Text(l.Y[k])))
		if m := (Mark{X: l.X[k], Text: "90 % at " + label}); !slices.Contains(marks, m) {
			marks = append(marks, m)
		}
	}
	return marks
}

// room reports whether the key is a capacity. More capacity costs money, and the hit ratio shows the
// gain.
func (s *Sweep) room() bool { return strings.HasSuffix(s.key, "-gb") }

// leastEnough returns the index of the smallest load that reaches 90 % of the highest bandwidth. ok is
// false if this is the first or the last point: then the sweep does not show where the bandwidth stops to
// grow.
func leastEnough(y []float64) (int, bool) {
	if len(y) < leastPoints {
		return 0, false
	}
	k := slices.IndexFunc(y, func(v float64) bool { return v >= 0.9*slices.Max(y) })
	return k, k > 0 && k < len(y)-1
}
