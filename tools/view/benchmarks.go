package view

import (
	"fmt"
	"slices"
	"strings"

	"kvbench/kvbench/report"
	"kvbench/kvbench/units"
	"kvbench/tools/stats"
)

// Group is all sub-benchmarks of one benchmark. More than two members are folded away, or a sweep
// of forty would be a hundred screens.
type Group struct {
	Name    string
	Members []Member
}

// Member is one benchmark. Its parts stand before its figures.
type Member struct {
	Of      *stats.Benchmark
	Facts   string
	Parts   []report.Table
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

// newMember makes the section of a benchmark. Figures stand from the unusual to the usual: what an
// autoscaler or a block trace was run for comes first.
func newMember(b *stats.Benchmark, t *stats.Table) Member {
	var typical []trial
	for run := range t.Runs {
		if rec := medianTrial(b, run); rec != nil {
			typical = append(typical, trial{run, rec})
		}
	}
	return Member{Of: b, Facts: memberFacts(b), Parts: parts(typical, t),
		Tiers: tierFills(typical, t), Figures: shown(b.Simulated,
			slices.Concat(autoscalingFigures(typical, t), blockFigures(typical, t),
				bandwidthFigures(typical, t), latencyFigures(b, typical, t),
				fillFigures(typical, t), traceFigures(b, t))...)}
}

// parts are what only some results have, of the median trial of each run.
func parts(typical []trial, t *stats.Table) (out []report.Table) {
	for _, k := range typical {
		for _, p := range report.Tables(k.Result) {
			if len(t.Runs) > 1 {
				p.Title += ", " + t.Labels[k.run]
			}
			out = append(out, p)
		}
	}
	return out
}

// memberFacts is one line on what the benchmark was.
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
		// Rates of small and large entries cannot be compared, so that their size stands with
		// every benchmark.
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
