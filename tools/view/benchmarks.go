package view

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"kvbench/kvbench/report"
	"kvbench/kvbench/units"
	"kvbench/tools/load"
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

// trial is one that stands for a run.
type trial struct {
	run int
	*load.Record
}

// medianTrial is the trial of a run whose headline value is the median (the lower one of two): a
// real trial, whose plots are what typically happened. Nil when no trial has a result file.
func medianTrial(b *stats.Benchmark, run int) (best *load.Record) {
	m, least := b.Headline(), math.Inf(1)
	for _, rec := range b.Trials[run] {
		if rec.Result == nil {
			continue
		}
		distance := math.MaxFloat64 // without the metric, the first that has a result
		for _, v := range rec.Values {
			if m != nil && v.Unit == m.Unit {
				distance = math.Abs(v.Value - m.Cells[run].Summary.Center)
			}
		}
		if best == nil || distance < least {
			best, least = rec, distance
		}
	}
	return best
}

// Anchor is a name that can stand behind #. Links in the page and from other documents use it, so
// that it must not change with the keys of a sweep.
func Anchor(name string) string { return anchors.Replace(base(name)) }

var anchors = strings.NewReplacer("/", "-", "=", "-", " ", "-", `"`, "-", "(", "-", ")", "-")

// Keys are those of a benchmark's name, else the name: within a section only they tell benchmarks
// apart.
func Keys(name string) string {
	_, keys, _ := strings.Cut(name, "/")
	return cmp.Or(keys, name)
}

// base is the benchmark's name without the keys of its sub-benchmarks.
func base(name string) string {
	b, _, _ := strings.Cut(name, "/")
	return b
}
