package view

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"kvbench/kvbench/result"
	"kvbench/tools/load"
	"kvbench/tools/stats"
)

// Group is all sub-benchmarks of one benchmark. More than two members are folded away, or a sweep
// of forty would be a hundred screens.
type Group struct {
	Name    string
	Anchor  string
	Members []Member
	Folded  bool // many small ones: their plots are folded away
	Metrics Grid
}

// Member is one benchmark. Its parts stand before its figures.
type Member struct {
	Name    string
	Facts   string
	Parts   []Part
	Tiers   *Grid
	Figures []Figure
}

// groups makes a section for each benchmark with its sub-benchmarks.
func groups(t *stats.Table) (out []Group) {
	for _, b := range t.Benchmarks {
		name := base(b.Name)
		i := slices.IndexFunc(out, func(g Group) bool { return g.Name == name })
		if i < 0 {
			i = len(out)
			out = append(out, Group{Name: name, Anchor: anchor(name),
				Metrics: Grid{Head: metricsHead(t)}})
		}
		out[i].Members = append(out[i].Members, newMember(b, t))
		out[i].Folded = len(out[i].Members) > 2
		out[i].Metrics.addMetrics(b)
	}
	return out
}

// metricsHead has a column for each run and one for its change against the first.
func metricsHead(t *stats.Table) []string {
	head := []string{"benchmark", "metric"}
	for i, run := range t.Labels {
		head = append(head, run)
		if i > 0 {
			head = append(head, "change")
		}
	}
	return head
}

// addMetrics adds the metrics of a benchmark. Its name stands before the first of them only: the
// eye finds the next group by it.
func (g *Grid) addMetrics(b *stats.Benchmark) {
	// Within a section only the keys tell benchmarks apart.
	_, keys, _ := strings.Cut(b.Name, "/")
	if keys == "" {
		keys = b.Name
	}
	for i, m := range b.Metrics {
		unit, _ := stats.Line(m.Unit)
		row := []Cell{{}, {Text: stats.Title(m.Unit), Sub: unit}}
		if i == 0 {
			row[0].Text = keys
			if len(g.Rows) > 0 {
				row[0].Class = "first"
			}
		}
		for k, c := range m.Cells {
			row = append(row, medianCell(c, m.Unit))
			if k > 0 {
				row = append(row, changeCell(c.Change, m))
			}
		}
		g.Rows = append(g.Rows, row)
	}
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
	m := Member{Name: b.Name, Facts: memberFacts(b), Parts: parts(typical, t),
		Tiers: tierFills(typical, t)}
	m.Figures = slices.Concat(autoscalingFigures(typical, t), blockFigures(typical, t),
		bandwidthFigures(typical, t), latencyFigures(b, t), fillFigures(typical, t),
		traceFigures(b, t))
	// The name of the benchmark says it too, but a figure has only its caption.
	if b.Simulated {
		markFigures(m.Figures)
	}
	return m
}

// markFigures marks figures of predictions: one may be cut out and passed on without its page.
func markFigures(figures []Figure) {
	for i := range figures {
		figures[i].Caption = "SIMULATED: " + figures[i].Caption
	}
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
		f.add("window", stats.Seconds(float64(r.WindowNS)/1e9))
		// Rates of small and large entries cannot be compared, so that their size stands with
		// every benchmark.
		for op, d := range map[string]result.Distribution{"read": r.EntrySizes.Read,
			"written": r.EntrySizes.Write} {
			if d.P50 != nil {
				f.add("median entry "+op, bytes(*d.P50))
			}
		}
		f.add("verdict", r.Harness.Verdict.Kind)
	}
	var parts []string
	for _, k := range []string{"model", "users", "workers", "window", "median entry read",
		"median entry written", "verdict"} {
		v := f.values[k]
		switch {
		case len(v) == 0:
		// A sweep has many values: its ends say enough.
		case len(v) > 3:
			parts = append(parts, fmt.Sprintf("%s %s … %s", k, v[0], v[len(v)-1]))
		default:
			parts = append(parts, k+" "+strings.Join(v, " or "))
		}
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

// anchor is a name that can stand behind #. Links in the page and from other documents use it, so
// that it must not change with the keys of a sweep.
func anchor(name string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune(`/= "()`, r) {
			return '-'
		}
		return r
	}, base(name))
}

// base is the benchmark's name without the keys of its sub-benchmarks.
func base(name string) string {
	b, _, _ := strings.Cut(name, "/")
	return b
}
