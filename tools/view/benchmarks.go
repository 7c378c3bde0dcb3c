package view

import (
	"fmt"
	"slices"
	"strings"

	"kvbench/kvbench/report"
	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
	"kvbench/tools/stats"
)

// Group is all sub-benchmarks of one benchmark. More than two members are folded away, because a
// sweep of forty would fill a hundred screens.
type Group struct {
	Name    string
	Members []Member
}

// Member is one benchmark, with its parts and figures.
type Member struct {
	Of      *stats.Benchmark
	Facts   string
	Parts   []Part // what only it has, and what was served
	Details []Part // the other tables of the summary
	Tiers   []Fill
	Figures []Chart
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
	m := Member{Of: b, Facts: memberFacts(b), Parts: parts(typical, t, report.Tables),
		Tiers: tierFills(typical, t), Figures: shown(b.Simulated,
			slices.Concat(kneeFigures(typical, t), autoscalingFigures(typical, t),
				firstTokenFigures(typical, t), blockFigures(typical, t),
				bandwidthFigures(b, typical, t), loadFigures(typical, t),
				latencyFigures(b, typical, t),
				// With several runs, a heat map of each kind for each run would fill a hundred
				// screens.
				courseFigures(typical, t, len(typical) == 1, stats.FollowCounted),
				fillFigures(b, typical, t), courseFigures(typical, t, true, stats.FollowTraced),
				traceFigures(b, t))...)}
	for _, p := range slices.Concat(parts(typical, t, Sections),
		parts(typical, t, traced)) {
		if details(p.Sheet) {
			m.Details = append(m.Details, p)
		} else {
			m.Parts = append(m.Parts, p)
		}
	}
	return m
}

// Part is a table of the median trial of each run. With several runs its first column is the run,
// whose number Of has for each row.
type Part struct {
	report.Table
	Of []int // from 1
}

// parts are tables of the median trial of each run; those of one title are one table, which has the
// columns that any of them has.
func parts(typical []trial, t *stats.Table, of func(*result.Result) []report.Table) (out []Part) {
	for _, k := range typical {
		for _, p := range of(k.Result) {
			i := slices.IndexFunc(out, func(x Part) bool { return x.Title == p.Title })
			if i < 0 {
				i = len(out)
				out = append(out, Part{Table: report.Table{Title: p.Title, Sheet: p.Sheet,
					Note: p.Note, Folded: p.Folded}})
				if len(t.Runs) > 1 {
					out[i].Columns = []report.Column{{Page: "run"}}
				}
			}
			out[i].add(p, k.run, t)
		}
	}
	return out
}

// add takes in the rows of a run.
func (p *Part) add(from report.Table, run int, t *stats.Table) {
	several := len(t.Runs) > 1
	for _, words := range from.Words {
		if several {
			words = t.Labels[run] + ": " + words
		}
		p.Words = append(p.Words, words)
	}
	place := make([]int, len(from.Columns))
	for i, c := range from.Columns {
		if c.Page == "" { // of the workbook alone
			place[i] = -1
			continue
		}
		if place[i] = slices.IndexFunc(p.Columns,
			func(x report.Column) bool { return x.Page == c.Page }); place[i] < 0 {
			place[i] = len(p.Columns)
			p.Columns = append(p.Columns, c)
			for k := range p.Rows {
				p.Rows[k] = append(p.Rows[k], "")
			}
		}
	}
	for _, cells := range from.Rows {
		row := make([]any, len(p.Columns))
		for i := range row {
			row[i] = "" // not unknown: its run has no such column
		}
		if several {
			row[0] = t.Labels[run]
		}
		for i, v := range cells {
			if place[i] >= 0 {
				row[place[i]] = v
			}
		}
		p.Rows, p.Of = append(p.Rows, row), append(p.Of, run+1)
	}
}

// memberFacts is one line of facts about the benchmark.
func memberFacts(b *stats.Benchmark) string {
	var f facts
	for _, rec := range slices.Concat(b.Trials...) {
		r := rec.Result
		if r == nil {
			continue
		}
		f.add("model", r.Model.Name)
		if r.Workload.Users > 0 {
			f.add("users", fmt.Sprint(r.Workload.Users))
		}
		f.add("workers", fmt.Sprint(r.Workload.Workers))
		f.add("window", Value(units.Nanoseconds, r.WindowNS).Text)
		// Rates of small and large entries cannot be compared, so every benchmark shows its entry
		// sizes.
		f.add("median entry read", Bytes(r.EntrySizes.Read.P50))
		f.add("median entry written", Bytes(r.EntrySizes.Write.P50))
		f.add("verdict", r.Harness.Verdict.Kind)
	}
	var parts []string
	for _, fact := range f {
		v := fact.Values
		if len(v) > 3 { // a sweep has many values: its ends say enough
			v = []string{v[0] + " … " + v[len(v)-1]}
		}
		parts = append(parts, fact.Key+" "+strings.Join(v, " or "))
	}
	return strings.Join(parts, " · ")
}
