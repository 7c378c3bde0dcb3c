package view

import (
	"slices"
	"strings"

	"kvbench/kvbench/report"
	"kvbench/tools/load"
	"kvbench/tools/stats"
)

// Group is all sub-benchmarks of one benchmark. More than two members are folded away, because a
// sweep of forty would fill a hundred screens.
type Group struct {
	Name    string
	Members []Member
}

// Member is one benchmark, with the sections of its results and its figures.
type Member struct {
	Of      *stats.Benchmark
	Parts   []Part
	Figures []Chart
	Details []Part // sections that are folded away
}

// groups makes a section for each benchmark with its sub-benchmarks.
func groups(t *stats.Table) (out []Group) {
	for _, b := range t.Benchmarks {
		name := base(b.Name)
		i := slices.IndexFunc(out, func(g Group) bool { return g.Name == name })
		if i < 0 {
			i = len(out)
			out = append(out, Group{Name: name})
		}
		out[i].Members = append(out[i].Members, newMember(b, t))
	}
	return out
}

// newMember makes the section of a benchmark. Special figures come first: an autoscaler or a block
// trace is run for them.
func newMember(b *stats.Benchmark, t *stats.Table) Member {
	var typical []trial
	for run := range t.Runs {
		if rec := MedianTrial(b, run); rec != nil {
			typical = append(typical, trial{run, rec})
		}
	}
	m := Member{Of: b, Figures: shown(b.Simulated,
		slices.Concat(kneeFigures(typical, t), autoscalingFigures(typical, t),
			firstTokenFigures(typical, t), blockFigures(typical, t),
			bandwidthFigures(b, typical, t), loadFigures(typical, t),
			latencyFigures(b, typical, t),
			// With several runs, a heat map of each kind for each run would fill a hundred
			// screens.
			courseFigures(typical, t, len(typical) == 1, stats.FollowCounted),
			fillFigures(b, typical, t), courseFigures(typical, t, true, stats.FollowTraced),
			traceFigures(b, t))...)}
	for _, p := range append(parts(typical, t, sections), parts(typical, t, traced)...) {
		if p.Folded {
			m.Details = append(m.Details, p)
		} else {
			m.Parts = append(m.Parts, p)
		}
	}
	return m
}

func sections(rec *load.Record) []report.Section { return report.Sections(rec.Result) }

// Part is a section of the median trial of each run. With several runs the first column of its
// table is the run, whose number Of has for each row, and its lines begin with the run's name.
type Part struct {
	report.Section
	Of   []int // from 1
	Long bool  // the table is folded away
}

// mostRows is how long a table may be that is not folded away.
const mostRows = 12

// parts are the sections of the median trial of each run; those of one title are one part, whose
// table has the columns that any of them has.
func parts(typical []trial, t *stats.Table,
	of func(*load.Record) []report.Section) (out []Part) {
	all := make([][]report.Section, len(typical))
	for i, k := range typical {
		all[i] = of(k.Record)
	}
	for _, title := range report.Titles(all) {
		var p Part
		for i, k := range typical {
			for _, s := range all[i] {
				if s.Title == title {
					p.add(s, k.run, t)
				}
			}
		}
		p.Long = len(p.Rows) > mostRows
		out = append(out, p)
	}
	return out
}

// add takes in the section of a run.
func (p *Part) add(s report.Section, run int, t *stats.Table) {
	if len(t.Runs) < 2 {
		p.Section = s
		return
	}
	p.Title, p.Note, p.Folded = s.Title, s.Note, s.Folded
	for i, l := range s.Lines {
		if i == 0 {
			l.Topic = strings.TrimSpace(t.Labels[run] + " " + l.Topic)
		}
		p.Lines = append(p.Lines, l)
	}
	if len(s.Rows) > 0 && len(p.Columns) == 0 {
		p.Columns = []report.Column{{Name: "run"}}
	}
	place := make([]int, len(s.Columns))
	for i, c := range s.Columns {
		if place[i] = slices.Index(p.Columns, c); place[i] < 0 {
			place[i] = len(p.Columns)
			p.Columns = append(p.Columns, c)
			for k := range p.Rows {
				p.Rows[k] = append(p.Rows[k], "")
			}
		}
	}
	for _, cells := range s.Rows {
		row := make([]any, len(p.Columns))
		for i := range row {
			row[i] = "" // not unknown: its run has no such column
		}
		row[0] = t.Labels[run]
		for i, v := range cells {
			row[place[i]] = v
		}
		p.Rows, p.Of = append(p.Rows, row), append(p.Of, run+1)
	}
}
