package gate

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"golang.org/x/perf/benchfmt"
	"golang.org/x/perf/benchunit"

	"kvbench/tools/load"
	"kvbench/tools/stats"
)

// Verdict is the answer for one metric of one benchmark.
type Verdict string

// The verdicts. Everything but Fine, Better and Shown makes the gate say no, Few and Missing unless
// they are allowed.
const (
	Fine    Verdict = "ok"
	Better  Verdict = "better"  // significantly
	Worse   Verdict = "worse"   // significantly, and by more than is allowed
	Few     Verdict = "few"     // not enough samples to find anything
	Missing Verdict = "missing" // there in old, not in new
	Shown   Verdict = "shown"   // not gated
)

// Row is one metric of one benchmark. The text of a row is made from it alone, in every format.
type Row struct {
	Bench, Unit string // the unit as written in the input
	tidy        string
	Old, New    stats.Cell
	// share of the old median by which the new is worse, negative = better; NaN when no direction
	// is known
	Loss        float64
	Limit       float64
	P, Adjusted float64 // before and after Holm's correction
	Verdict     Verdict
	Need        int // samples per side that would do, with Few
}

// Options of a comparison.
type Options struct {
	Alpha        float64
	Limits       Limits
	AllowFew     bool
	AllowMissing bool
	All          bool     // compare what is not gated too
	Ignore       []string // parameters in which the sides may differ
}

// Report is the answer.
type Report struct {
	Options  Options
	Rows     []Row    // gated ones, in the order of the old side
	Others   []Row    // with Options.All what else both sides measured, not gated
	Ungated  []string // which metrics those are
	OnlyNew  []string
	Notes    []string
	Family   int // metrics that were tested together
	Tested   int // that would have been, with samples enough
	Refusals []Mismatch
}

// Failed tells whether the gate says no.
func (r *Report) Failed() bool {
	return slices.ContainsFunc(r.Rows, func(row Row) bool { return r.fails(row.Verdict) })
}

// fails says whether a verdict makes the gate say no. Too few samples and a missing benchmark do
// unless they are allowed: nothing was found because nothing was looked at.
func (r *Report) fails(v Verdict) bool {
	switch v {
	case Worse:
		return true
	case Few:
		return !r.Options.AllowFew
	case Missing:
		return !r.Options.AllowMissing
	}
	return false
}

// The runs of the table that is judged.
const (
	oldSide = 0
	newSide = 1
)

// Judge compares two sides, which are the runs of a table. The error says that the question itself
// is wrong: nothing to compare, a metric that nobody measured or whose direction nobody knows. A
// report with refusals has no rows.
func Judge(t *stats.Table, o Options) (*Report, error) {
	r := &Report{Options: o, Notes: t.Notes}
	var both []*stats.Benchmark
	for _, b := range t.Benchmarks {
		if b.Settings[oldSide] != nil && b.Settings[newSide] != nil {
			r.Refusals = append(r.Refusals, mismatches(b, o.Ignore)...)
			both = append(both, b)
		}
	}
	// One benchmark that was measured in another way refuses all: a family of which a part was
	// left out would pass on what remains.
	if len(r.Refusals) > 0 {
		return r, nil
	}
	// Predictions may be compared with each other, but nobody should take them for measurements.
	for _, b := range both {
		how := b.Settings[oldSide].Of(load.Simulated)
		if len(how) > 0 && how[0] != load.Measured {
			r.Notes = append(r.Notes, b.Name+": simulated "+how[0]+
				" on both sides: this compares predictions, not measurements")
		}
	}
	// A metric that nobody measured is a slip of the finger, and a gate that never looks at
	// anything.
	labels := oldLabels(t)
	if err := checkNamed(o.Limits, labels, t.Units); err != nil {
		return nil, err
	}
	for _, b := range t.Benchmarks {
		if b.Settings[oldSide] == nil {
			r.OnlyNew = append(r.OnlyNew, b.Name)
		} else {
			r.bench(b)
		}
	}
	r.correct()
	for _, label := range labels {
		if !slices.ContainsFunc(r.Rows, func(row Row) bool { return row.Unit == label }) {
			r.Ungated = append(r.Ungated, label)
		}
	}
	return r, nil
}

// Mismatch is one setting in which two results differ.
type Mismatch struct {
	Bench, Name string
	Old, New    string
}

// mismatches compares the settings of one benchmark on both sides, and of the results of each side
// among themselves.
func mismatches(b *stats.Benchmark, ignore []string) (list []Mismatch) {
	add := func(name, old, new string) {
		if old != new && (load.Defines(name) || !slices.Contains(ignore, name)) {
			list = append(list, Mismatch{b.Name, name, old, new})
		}
	}
	// A mixture within one side has no median to speak of.
	for _, d := range slices.Concat(b.Settings[oldSide].Mixed(), b.Settings[newSide].Mixed(),
		load.Differences(b.Settings[oldSide], b.Settings[newSide])) {
		add(d.Name, d.Old[0], d.New[0])
	}
	return list
}

// oldLabels are the metrics of the old side as they are written, in the order of the input.
func oldLabels(t *stats.Table) (list []string) {
	for _, b := range t.Benchmarks {
		for _, m := range b.Metrics {
			if b.Settings[oldSide] != nil && m.Cells[oldSide].N() > 0 &&
				!slices.Contains(list, m.Label) {
				list = append(list, m.Label)
			}
		}
	}
	return list
}

// checkNamed refuses metrics that were named and cannot be gated.
func checkNamed(l Limits, labels []string, units benchfmt.UnitMetadataMap) error {
	known := make(map[string]bool)
	for _, label := range labels {
		_, unit := benchunit.Tidy(1, label)
		known[unit] = true
	}
	for _, name := range l.named {
		// Names are compared as benchfmt tidies them: ns/op is sec/op inside.
		_, unit := benchunit.Tidy(1, name)
		if !known[unit] {
			return fmt.Errorf("-max-regress %s: no benchmark of the old side has this metric; "+
				"there are %s", name, strings.Join(slices.Sorted(slices.Values(labels)), " "))
		}
		if units.GetBetter(unit) == 0 {
			return fmt.Errorf("-max-regress %s: whether more or less of it is better is not "+
				"known; put a line \"Unit %s better=higher\" (or lower) into the input", name, name)
		}
	}
	return nil
}

// headline is the metric by which a benchmark is gated when none is named.
func headline(b *stats.Benchmark) *stats.Metric {
	for _, unit := range stats.Headlines {
		if m := b.Metric(unit); m != nil && m.Cells[oldSide].N() > 0 {
			return m
		}
	}
	return nil
}

// bench makes the rows of a benchmark that the old side has.
func (r *Report) bench(b *stats.Benchmark) {
	// The benchmark is gone: one row stands for all its metrics.
	main := headline(b)
	if b.Settings[newSide] == nil {
		row := Row{Bench: b.Name, Verdict: Missing, Loss: math.NaN(), P: 1, Adjusted: 1}
		if main != nil {
			row.Unit, row.tidy, row.Old = main.Label, main.Unit, main.Cells[oldSide]
		}
		r.Rows = append(r.Rows, row)
		return
	}
	gated := false
	for _, m := range b.Metrics {
		if m.Cells[oldSide].N() == 0 {
			continue
		}
		limit, named := r.Options.Limits.limit(m.Unit)
		row := newRow(b.Name, m, limit)
		// What is gated: the headline and what is named. The rest is shown with -all.
		switch n := row.New.N(); {
		case m != main && !named:
			if n > 0 && r.Options.All {
				r.Others = append(r.Others, row)
			}
			continue
		case n == 0:
			row.Verdict = Missing
		case min(row.Old.N(), n) < stats.LeastSamples:
			row.Verdict = Few
		default:
			row.Verdict = Fine
		}
		r.Rows = append(r.Rows, row)
		gated = true
	}
	if !gated {
		r.Notes = append(r.Notes, b.Name+": nothing to gate: it has none of read-B/s, write-B/s "+
			"and ns/op, and no metric of it was named")
	}
}

// newRow is not judged yet.
func newRow(name string, m *stats.Metric, limit float64) Row {
	row := Row{Bench: name, Unit: m.Label, tidy: m.Unit, Limit: limit, Loss: math.NaN(),
		P: 1, Adjusted: 1, Verdict: Shown, Old: m.Cells[oldSide], New: m.Cells[newSide]}
	// Without a change there is nothing to test: p stays 1.
	if c := row.New.Change; c != nil {
		row.P, row.Adjusted = c.P, c.P
		if m.Better != 0 {
			row.Loss = stats.Loss(row.Old.Summary.Center, row.New.Summary.Center, m.Better)
		}
	}
	return row
}

// correct applies Holm's method to what has samples enough, and finds what could not have been
// significant however large the difference.
func (r *Report) correct() {
	// Rows with too few samples are no part of the family: they could not raise an alarm, and
	// counting them would hide the alarms of the others.
	var family []int
	var p, least []float64
	// So far Fine only means that a row can be tested.
	for i, row := range r.Rows {
		if row.Verdict == Fine {
			family = append(family, i)
			p = append(p, row.P)
			least = append(least, stats.LeastP(row.Old.N(), row.New.N()))
		}
		if row.Verdict != Missing {
			r.Tested++
		}
	}
	r.Family = len(family)
	// The same correction of the least p values that these samples can have says which rows could
	// not have been significant, however large the difference.
	adjusted, best := stats.Holm(p), stats.Holm(least)
	for k, i := range family {
		row := &r.Rows[i]
		row.Adjusted = adjusted[k]
		switch significant := row.Adjusted < r.Options.Alpha; {
		case best[k] >= r.Options.Alpha:
			row.Verdict = Few
		case significant && row.Loss > row.Limit:
			row.Verdict = Worse
		case significant && row.Loss < 0:
			row.Verdict = Better
		}
	}
	// Enough samples for a single row may be too few for the family, so that the number asked for
	// is that of the family.
	need := stats.Needed(r.Tested, r.Options.Alpha)
	for i := range r.Rows {
		if r.Rows[i].Verdict == Few {
			r.Rows[i].Need = need
		}
	}
}
