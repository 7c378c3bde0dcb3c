package view

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
	"kvbench/tools/stats"
)

// Curve is what requests of one size moved, by how many of them were in flight.
type Curve struct {
	Name string
	Rate []float64 // bytes/s at each of the depths; not a number where it was not measured
	P99  []float64 // ns, also a gap where it was not measured
}

// KneeCurves are the curves by which a knee was found, one for each size of a request, and their
// depths. Without such a search there are none.
func KneeCurves(r *result.Result) (depths []float64, curves []Curve) {
	if r.PlainIO == nil || r.PlainIO.Knee == nil {
		return nil, nil
	}
	sizes := map[int64]map[float64]result.KneePoint{}
	for _, p := range r.PlainIO.Knee.Points {
		depth := float64(p.InFlight)
		if sizes[p.RequestBytes] == nil {
			sizes[p.RequestBytes] = map[float64]result.KneePoint{}
		}
		sizes[p.RequestBytes][depth] = p
		if !slices.Contains(depths, depth) {
			depths = append(depths, depth)
		}
	}
	slices.Sort(depths)
	for _, size := range slices.Sorted(maps.Keys(sizes)) {
		points, c := sizes[size], Curve{Name: units.Bytes.Text(size)}
		for _, depth := range depths {
			rate, p99 := math.NaN(), math.NaN()
			if p, some := points[depth]; some {
				rate = p.Rate
				if p.P99NS != nil {
					p99 = float64(*p.P99NS)
				}
			}
			c.Rate, c.P99 = append(c.Rate, rate), append(c.P99, p99)
		}
		curves = append(curves, c)
	}
	return depths, curves
}

// kneeFigures are these curves of each run: where they bend is what an engine has to have in
// flight, and what a request waits beyond that is its p99.
func kneeFigures(typical []trial, t *stats.Table) (out []Chart) {
	for _, k := range typical {
		depths, curves := KneeCurves(k.Result)
		if len(curves) == 0 {
			continue
		}
		x := Axis{Label: "requests in flight", Log: true}
		for _, d := range depths {
			x.Ticks = append(x.Ticks, Tick{At: d, Label: fmt.Sprint(d)})
		}
		title := " against requests in flight, by the size of a request, median trial"
		if len(t.Runs) > 1 {
			title += ", " + t.Labels[k.run]
		}
		rate := Chart{Title: "Rate" + title, X: x, Y: Axis{Label: "rate (%s/s)", Zero: true}}
		p99 := Chart{Title: "p99" + title, X: x, Y: Axis{Label: "p99 (ms)", Log: true}}
		for i, c := range curves {
			l := Line{Name: c.Name, Colour: i % Colours, Dots: true, X: depths, Y: slices.Clone(c.Rate)}
			rate.Lines = append(rate.Lines, l)
			l.Y = slices.Clone(c.P99)
			for j := range l.Y {
				l.Y[j] /= 1e6
			}
			p99.Lines = append(p99.Lines, l)
		}
		rate.inBytes()
		out = append(out, rate, p99)
	}
	return out
}
