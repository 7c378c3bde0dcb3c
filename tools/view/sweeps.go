package view

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
	"kvbench/tools/stats"
)

// Sweep is one swept parameter of one benchmark as curves. Above the figures it names the loads
// from which on more brings little.
type Sweep struct {
	Title   string   // the benchmark's name, with … for the key's value
	Enough  []string // the least load with 90 % of the maximum, for each line
	Figures []Chart

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

// Sweeps looks for keys with at least three numeric values while the rest of the name stays the
// same, and draws each that has figures.
func Sweeps(t *stats.Table) (out []Sweep) {
	for _, b := range t.Benchmarks {
		keys, values := keyValues(b.Name)
		for _, k := range keys {
			v, ok := quantity(values[k])
			if !ok {
				continue
			}
			// Two swept keys make two sets of sweeps: each value of one is a sweep of the other.
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

// draw draws the sweep against its key, on a logarithmic axis where the values span three octaves
// or more: sweeps mostly double. Bandwidth grows up to some load, and latency from there on: the
// two figures belong together.
func (s *Sweep) draw(t *stats.Table) {
	x := Axis{Label: s.key}
	if first, last := s.points[0].at, s.points[len(s.points)-1].at; first > 0 && last/first >= 8 {
		x.Log = true
		x.Label += " (log scale)"
	}
	for _, p := range s.points {
		x.Ticks = append(x.Ticks, Tick{At: p.at, Label: p.label})
	}
	bandwidth := Chart{Title: "Bandwidth against " + s.key + ", median of the trials", X: x,
		Y: Axis{Label: "bandwidth (GiB/s)", Zero: true}}
	latency := Chart{Title: "Latency against " + s.key + ", median of the trials", X: x,
		Y: Axis{Label: "latency (ms, log scale)", Log: true}}
	for run := range t.Runs {
		for i, op := range ops {
			l := s.along(lineOf(t, run, i, op), op+"-B/s", run, 1.0/(1<<30))
			bandwidth.addLine(l)
			k, ok := leastEnough(l.Y)
			if !ok || !s.load() {
				continue
			}
			at := slices.IndexFunc(s.points, func(p point) bool { return p.at == l.X[k] })
			label := s.points[at].label
			s.Enough = append(s.Enough, fmt.Sprintf("%s: 90 %% of the maximum at %s=%s, %s GiB/s",
				l.Name, s.key, label, units.Number.Text(l.Y[k])))
			// It is marked once, though several lines may share it.
			m := Mark{X: l.X[k], Text: "90 % at " + label}
			if !slices.Contains(bandwidth.Marks, m) {
				bandwidth.Marks = append(bandwidth.Marks, m)
			}
		}
		for i, what := range []string{"read-p95", "write-p95", "e2e-p95"} {
			latency.addLine(s.along(lineOf(t, run, i, what), what+"-sec", run, 1e3))
		}
	}
	latency.Marks = bandwidth.Marks
	// The hit ratio of each capacity: a sweep of capacities is run for it.
	hits := Chart{Title: "Hit ratio against " + s.key + ", median of the trials", X: x,
		Y: Axis{Label: "found (share)", Zero: true}}
	for run := range t.Runs {
		for i, what := range []string{"hit-ratio", "token-hit-ratio"} {
			hits.addLine(s.along(lineOf(t, run, i, stats.Title(what)), what, run, 1))
		}
		// The limit for any size, for the same requests.
		ideal := lineOf(t, run, 2, "ideal")
		for _, p := range s.points {
			rec := MedianTrial(p.of, run)
			if rec != nil && rec.Result.BlockCache != nil {
				ideal.add(p.at, orNaN(rec.Result.BlockCache.IdealHitRatio))
			}
		}
		hits.addLine(ideal)
	}
	figures := []Chart{bandwidth, latency, hits}
	if s.Room() {
		figures = []Chart{hits, bandwidth, latency}
	}
	s.Figures = shown(s.points[0].of.Simulated, figures...)
}

// Room reports whether the key is a capacity and no load: more of it costs money, and the hit ratio
// shows the gain.
func (s *Sweep) Room() bool { return strings.HasSuffix(s.key, "-gb") }

// load reports whether a larger value puts more load on the storage. Only such a sweep has a load
// that is enough: a capacity, or the size of an entry or a request, is no load.
func (s *Sweep) load() bool {
	return !s.Room() && !strings.HasSuffix(s.points[0].label, "iB")
}

// along adds one metric of one run along the sweep to a line.
func (s *Sweep) along(l Line, unit string, run int, scale float64) Line {
	l.Dots = true
	for _, p := range s.points {
		if c := p.of.Cell(unit, run); c.N() > 0 {
			l.add(p.at, c.Summary.Center*scale)
		}
	}
	return l
}

// enough is the share of the highest bandwidth that is enough.
const enough = 0.9

// leastEnough is the least load that reaches nine tenths of the highest bandwidth: from there more
// load brings little. There is none where that is the first or the last point: the sweep does not
// show it.
func leastEnough(y []float64) (int, bool) {
	if len(y) < leastPoints {
		return 0, false
	}
	k := slices.IndexFunc(y, func(v float64) bool { return v >= enough*slices.Max(y) })
	return k, k > 0 && k < len(y)-1
}

// kneeFigures are the rate and the p99 against the requests in flight, a curve for each request
// size, in two charts for each run that measured a knee. An engine needs the number at which the
// rate bends; beyond it the p99 shows the wait of a request. A cell that was not measured is a gap.
func kneeFigures(typical []trial, t *stats.Table) (out []Chart) {
	for _, k := range typical {
		if k.Result.PlainIO == nil || k.Result.PlainIO.Knee == nil {
			continue
		}
		depths, sizes := map[int]bool{}, map[int64]map[int]result.KneePoint{}
		for _, p := range k.Result.PlainIO.Knee.Points {
			depths[p.InFlight] = true
			if sizes[p.RequestBytes] == nil {
				sizes[p.RequestBytes] = map[int]result.KneePoint{}
			}
			sizes[p.RequestBytes][p.InFlight] = p
		}
		title := " against requests in flight, by the size of a request, median trial" +
			ofRun(t, k.run)
		rate := Chart{Title: "Rate" + title, X: Axis{Label: "requests in flight", Log: true},
			Y: Axis{Label: "rate (%s/s)", Zero: true}}
		for _, depth := range slices.Sorted(maps.Keys(depths)) {
			rate.X.Ticks = append(rate.X.Ticks, Tick{At: float64(depth), Label: fmt.Sprint(depth)})
		}
		p99 := Chart{Title: "p99" + title, X: rate.X, Y: Axis{Label: "p99 (ms)", Log: true}}
		for i, size := range slices.Sorted(maps.Keys(sizes)) {
			moved := Line{Name: units.Bytes.Text(size), Colour: i % Colours, Dots: true}
			waited := moved
			for _, depth := range slices.Sorted(maps.Keys(depths)) {
				p, measured := sizes[size][depth]
				if !measured {
					p.Rate = math.NaN()
				}
				moved.add(float64(depth), p.Rate)
				waited.add(float64(depth), orNaN(p.P99NS)/1e6)
			}
			rate.Lines, p99.Lines = append(rate.Lines, moved), append(p99.Lines, waited)
		}
		rate.inBytes()
		out = append(out, rate, p99)
	}
	return out
}
