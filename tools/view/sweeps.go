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
	at    float64
	label string
	of    *stats.Benchmark
}

// leastPoints is the smallest number of points of a sweep. Two points are a comparison, not a curve.
const leastPoints = 3

// Sweeps returns the sweeps: keys with at least three numeric values, while the rest of the benchmark's
// name stays the same. It leaves out sweeps without figures.
func Sweeps(t *stats.Table) (out []Sweep) {
	for _, b := range t.Benchmarks {
		keys, values := keyValues(b.Name)
		for _, k := range keys {
			v, ok := quantity(values[k])
			if !ok {
				continue
			}
			// Two swept keys make two sets of sweeps: one sweep of a key per value of the other key.
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

// draw makes the figures of the sweep. The axis is logarithmic if the largest value is at least eight
// times the smallest, because most sweeps double. Bandwidth grows up to some load, and above it latency
// grows, so both figures mark that load.
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
			// Several lines may share a mark: add it once.
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
	// The hit ratio by capacity is the purpose of a capacity sweep.
	hits := Chart{Title: "Hit ratio against " + s.key + ", median of the trials", X: x,
		Y: Axis{Label: "found (share)", Zero: true}}
	for run := range t.Runs {
		for i, what := range []string{"hit-ratio", "token-hit-ratio"} {
			hits.addLine(s.along(lineOf(t, run, i, stats.Title(what)), what, run, 1))
		}
		// The ideal hit ratio: the limit of any capacity for the same requests.
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

// Room reports whether the key is a capacity. More capacity costs money, and the hit ratio shows the
// gain.
func (s *Sweep) Room() bool { return strings.HasSuffix(s.key, "-gb") }

// load reports whether a larger value of the key puts more load on the storage. A capacity and the size
// of an entry or a request do not.
func (s *Sweep) load() bool {
	return !s.Room() && !strings.HasSuffix(s.points[0].label, "iB")
}

// along appends a metric of one run, at each point of the sweep, to a line.
func (s *Sweep) along(l Line, unit string, run int, scale float64) Line {
	l.Dots = true
	for _, p := range s.points {
		if c := p.of.Cell(unit, run); c.N() > 0 {
			l.add(p.at, c.Summary.Center*scale)
		}
	}
	return l
}

// enough is the share of the highest bandwidth that counts as enough.
const enough = 0.9

// leastEnough returns the index of the smallest load that reaches 90 % of the highest bandwidth. ok is
// false if that is the first or the last point: then the sweep does not show the bend.
func leastEnough(y []float64) (int, bool) {
	if len(y) < leastPoints {
		return 0, false
	}
	k := slices.IndexFunc(y, func(v float64) bool { return v >= enough*slices.Max(y) })
	return k, k > 0 && k < len(y)-1
}

// kneeFigures returns two charts per run that measured a knee: the rate and the p99 against the requests
// in flight, with one curve per request size. Above the knee the rate stays and the p99 grows. A cell
// that was not measured is a gap.
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
