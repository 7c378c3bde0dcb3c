package html

import (
	"fmt"
	"strings"

	"kvbench/kvbench/result"
	"kvbench/tools/load"
	"kvbench/tools/stats"
)

// groups makes a section for each benchmark with its sub-benchmarks.
func (p *page) groups(t *stats.Table) {
	index := map[string]int{}
	for _, b := range t.Benchmarks {
		name := base(b.Name)
		i, ok := index[name]
		if !ok {
			i = len(p.Groups)
			index[name] = i
			p.Groups = append(p.Groups, group{Name: name, Anchor: anchor(name), Metrics: metricsHead(t)})
		}
		g := &p.Groups[i]
		g.Members = append(g.Members, newMember(b, t))
		g.Metrics.Rows = append(g.Metrics.Rows, metricRows(b, g)...)
	}
	for i := range p.Groups {
		p.Groups[i].Folded = len(p.Groups[i].Members) > 2
	}
}

func metricsHead(t *stats.Table) grid {
	g := grid{Head: []string{"benchmark", "metric"}}
	for i, run := range t.Labels {
		g.Head = append(g.Head, run)
		if i > 0 {
			g.Head = append(g.Head, "change")
		}
	}
	return g
}

func metricRows(b *stats.Benchmark, g *group) (rows [][]gridCell) {
	_, keys, _ := strings.Cut(b.Name, "/")
	if keys == "" {
		keys = b.Name
	}
	for i, m := range b.Metrics {
		unit, _ := stats.Line(m.Unit)
		row := []gridCell{{Text: keys}, {Text: stats.Title(m.Unit), Sub: unit}}
		if i > 0 {
			row[0].Text = ""
		} else if len(g.Metrics.Rows) > 0 {
			row[0].Class = "first"
		}
		for k, c := range m.Cells {
			row = append(row, medianCell(c, m.Unit))
			if k > 0 {
				row = append(row, changeCell(c.Change, m))
			}
		}
		rows = append(rows, row)
	}
	return rows
}

func newMember(b *stats.Benchmark, t *stats.Table) member {
	m := member{Name: b.Name, Facts: memberFacts(b)}
	typical := make([]*load.Record, len(t.Runs))
	for run := range t.Runs {
		typical[run] = medianTrial(b, run)
	}
	m.Parts = parts(typical, t)
	m.Tiers = tierFills(typical, t)
	m.Figures = append(m.Figures, autoscalingPlots(typical, t)...)
	m.Figures = append(m.Figures, blockPlots(typical, t)...)
	m.Figures = append(m.Figures, bandwidthPlots(typical, t)...)
	m.Figures = append(m.Figures, latencyPlots(b, t)...)
	m.Figures = append(m.Figures, fillPlots(typical, t)...)
	m.Figures = append(m.Figures, tracePlots(b, t)...)
	if b.Simulated {
		markFigures(m.Figures)
	}
	return m
}

// markFigures marks figures of predictions: one may be cut out and passed on without its page.
func markFigures(figures []figure) {
	for i := range figures {
		figures[i].Caption = "SIMULATED: " + figures[i].Caption
	}
}

// memberFacts is one line on what the benchmark was.
func memberFacts(b *stats.Benchmark) string {
	var f facts
	for _, trials := range b.Trials {
		for _, rec := range trials {
			r := rec.Result
			if r == nil {
				continue
			}
			f.add("model", r.Model.Name)
			if r.Workload.Users > 0 {
				f.add("users", fmt.Sprint(r.Workload.Users))
			}
			f.add("workers", fmt.Sprint(r.Workload.Workers))
			f.add("window", stats.Seconds(float64(r.WindowNS)/1e9))
			for op, d := range map[string]result.Distribution{"read": r.EntrySizes.Read, "written": r.EntrySizes.Write} {
				if d.P50 != nil {
					f.add("median entry "+op, stats.Binary(float64(*d.P50)))
				}
			}
			f.add("verdict", r.Harness.Verdict.Kind)
		}
	}
	var parts []string
	for _, k := range []string{"model", "users", "workers", "window", "median entry read", "median entry written", "verdict"} {
		v := f.values[k]
		switch {
		case len(v) == 0:
		case len(v) > 3:
			parts = append(parts, fmt.Sprintf("%s %s … %s", k, v[0], v[len(v)-1]))
		default:
			parts = append(parts, k+" "+strings.Join(v, " or "))
		}
	}
	return strings.Join(parts, " · ")
}

// medianTrial is the trial of a run whose headline value is the median (the lower one of two): a real trial, whose plots
// are what typically happened.
func medianTrial(b *stats.Benchmark, run int) *load.Record {
	trials := b.Trials[run]
	if m := b.Headline(); m != nil {
		best, distance := -1, 0.0
		for i, rec := range trials {
			for _, v := range rec.Values {
				if v.Unit != m.Unit || rec.Result == nil {
					continue
				}
				d := v.Value - m.Cells[run].Summary.Center
				if d = max(d, -d); best < 0 || d < distance {
					best, distance = i, d
				}
			}
		}
		if best >= 0 {
			return trials[best]
		}
	}
	for _, rec := range trials {
		if rec.Result != nil {
			return rec
		}
	}
	return nil
}
