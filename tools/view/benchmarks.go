package view

import (
	"slices"
	"strings"

	"kvbench/kvbench/report"
	"kvbench/tools/load"
	"kvbench/tools/stats"
)

// Group has all sub-benchmarks of one benchmark. The page folds the members if there are more than two:
// a sweep of forty would fill a hundred screens.
type Group struct {
	Name    string
	Members []Member
}

// Member is one benchmark with the sections and the figures of its results.
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

// newMember makes the section of a benchmark. Figures of special runs come first, such as autoscaling or
// block requests: they are the reason for such a run.
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
			// With several runs, draw no heat map: one per kind and run would fill a hundred screens.
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

// Part is a section for the median trials of all runs. With several runs, the first column of the table
// is the run, Of has the run's number for each row, and lines begin with the run's name.
type Part struct {
	report.Section
	Of   []int // from 1
	Long bool  // the table is folded away
}

// mostRows is the largest number of rows of a table that the page does not fold.
const mostRows = 12

// parts returns the sections of the median trials. Sections with the same title are joined.
func parts(typical []trial, t *stats.Table,
	of func(*load.Record) []report.Section) (out []Part) {
	var all [][]report.Section
	for _, k := range typical {
		all = append(all, of(k.Record))
	}
	for _, j := range report.Join(all) {
		p := Part{Section: j.Section, Long: len(j.Rows) > mostRows}
		if len(t.Runs) > 1 {
			p.name(j, typical, t.Labels)
		}
		out = append(out, p)
	}
	return out
}

// name adds the run's name to each row and to the first line of each run.
func (p *Part) name(j report.Joined, typical []trial, labels []string) {
	for i, of := range j.LineOf {
		if i == 0 || of != j.LineOf[i-1] {
			p.Lines[i].Topic = strings.TrimSpace(labels[typical[of].run] + " " + p.Lines[i].Topic)
		}
	}
	if len(p.Rows) > 0 {
		p.Columns = append([]report.Column{{Name: "run"}}, p.Columns...)
	}
	for i, of := range j.RowOf {
		run := typical[of].run
		p.Rows[i], p.Of = append([]any{labels[run]}, p.Rows[i]...), append(p.Of, run+1)
	}
}
