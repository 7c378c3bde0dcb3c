package gate

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"golang.org/x/perf/benchunit"
)

// Verdict is the answer for one metric of one benchmark.
type Verdict string

// The verdicts. Everything but Fine, Better and Shown makes the gate say no, Few and Missing unless they are allowed.
const (
	Fine    Verdict = "ok"
	Better  Verdict = "better"  // significantly
	Worse   Verdict = "worse"   // significantly, and by more than is allowed
	Few     Verdict = "few"     // not enough samples to find anything
	Missing Verdict = "missing" // there in old, not in new
	Shown   Verdict = "shown"   // not gated
)

// Row is one metric of one benchmark.
type Row struct {
	Bench, Unit string // the unit as written in the input
	tidy        string
	Old, New    Sample
	Loss        float64 // share of the old median by which the new is worse, negative = better; NaN when no direction is known
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
	Ignore       []string // parameters in which the sides may differ
}

// Report is the answer.
type Report struct {
	Options  Options
	Rows     []Row // gated ones, in the order of the old side
	Others   []Row // what else both sides measured, not gated
	OnlyNew  []string
	Notes    []string
	Family   int // metrics that were tested together
	Refusals []Mismatch
}

// Failed tells whether the gate says no.
func (r *Report) Failed() bool {
	return slices.ContainsFunc(r.Rows, func(row Row) bool { return r.fails(row.Verdict) })
}

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

// Judge compares two sides. The error says that the question itself is wrong: nothing to compare, a metric that nobody
// measured or whose direction nobody knows. A report with refusals has no rows.
func Judge(old, new *Side, o Options) (*Report, error) {
	for _, s := range []*Side{old, new} {
		if s.Empty() {
			return nil, fmt.Errorf("%s holds no benchmark result", s.Name)
		}
	}
	key := keys(old, new)
	before, order := old.index(key)
	after, newOrder := new.index(key)
	r := &Report{Options: o, Notes: slices.Concat(old.Notes, new.Notes)}
	for _, name := range order {
		if after[name] != nil {
			r.Refusals = append(r.Refusals, mismatches(name, before[name], after[name], o.Ignore)...)
		}
	}
	if len(r.Refusals) > 0 {
		return r, nil
	}
	for _, name := range newOrder {
		if before[name] == nil {
			r.OnlyNew = append(r.OnlyNew, name)
		}
	}
	better := func(unit string) int {
		if b := old.units.GetBetter(unit); b != 0 {
			return b
		}
		return new.units.GetBetter(unit)
	}
	if err := checkNamed(o.Limits, before, better); err != nil {
		return nil, err
	}
	for _, name := range order {
		r.bench(name, before[name], after[name], better)
	}
	r.correct()
	return r, nil
}

// checkNamed refuses metrics that were named and cannot be gated.
func checkNamed(l Limits, benches map[string]*bench, better func(string) int) error {
	seen := make(map[string]bool)
	var labels []string
	for _, b := range benches {
		for _, u := range b.units {
			if seen[u] = true; !slices.Contains(labels, b.label[u]) {
				labels = append(labels, b.label[u])
			}
		}
	}
	slices.Sort(labels)
	for _, name := range l.named {
		_, unit := benchunit.Tidy(1, name)
		if !seen[unit] {
			return fmt.Errorf("-max-regress %s: no benchmark of the old side has this metric; there are %s", name, strings.Join(labels, " "))
		}
		if better(unit) == 0 {
			return fmt.Errorf("-max-regress %s: whether more or less of it is better is not known; put a line \"Unit %s better=higher\" (or lower) into the input", name, name)
		}
	}
	return nil
}

// headline is the metric by which a benchmark is gated when none is named.
func (b *bench) headline() string {
	for _, unit := range []string{"read-B/s", "write-B/s", "sec/op"} {
		if len(b.values[unit]) > 0 {
			return unit
		}
	}
	return ""
}

func (r *Report) bench(name string, old, new *bench, better func(string) int) {
	headline := old.headline()
	if new == nil {
		r.Rows = append(r.Rows, Row{Bench: name, Unit: old.label[headline], tidy: headline, Verdict: Missing,
			Old: summarize(old.values[headline]), New: summarize(nil), Loss: math.NaN(), P: 1, Adjusted: 1})
		return
	}
	gated := 0
	for _, unit := range old.units {
		limit, named := r.Options.Limits.limit(unit)
		row := Row{Bench: name, Unit: old.label[unit], tidy: unit, Limit: limit, Loss: math.NaN(), P: 1, Adjusted: 1, Verdict: Shown}
		a, b := old.values[unit], new.values[unit]
		row.Old, row.New = summarize(a), summarize(b)
		if better(unit) != 0 && len(b) > 0 {
			row.Loss = loss(row.Old.Median, row.New.Median, better(unit))
		}
		if len(b) > 0 {
			row.P = differ(a, b)
		}
		if unit != headline && !named {
			if len(b) > 0 {
				r.Others = append(r.Others, row)
			}
			continue
		}
		gated++
		switch {
		case len(b) == 0:
			row.Verdict = Missing
		case min(len(a), len(b)) < minSamples:
			row.Verdict = Few
		default:
			row.Verdict = Fine
		}
		r.Rows = append(r.Rows, row)
	}
	if gated == 0 {
		r.Notes = append(r.Notes, name+": nothing to gate: it has none of read-B/s, write-B/s and ns/op, and no metric of it was named")
	}
}

// correct applies Holm's method to what has samples enough, and finds what could not have been significant however large
// the difference.
func (r *Report) correct() {
	var family []int
	var p, least []float64
	for i, row := range r.Rows {
		if row.Verdict == Fine {
			family = append(family, i)
			p = append(p, row.P)
			least = append(least, leastP(row.Old.N, row.New.N))
		}
	}
	r.Family = len(family)
	adjusted, best := holm(p), holm(least)
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
	for i := range r.Rows {
		if r.Rows[i].Verdict == Few {
			r.Rows[i].Need = needed(max(1, r.tested()), r.Options.Alpha)
		}
	}
}

// tested counts what would be tested together if everything had samples enough.
func (r *Report) tested() int {
	n := 0
	for _, row := range r.Rows {
		if row.Verdict != Missing {
			n++
		}
	}
	return n
}
