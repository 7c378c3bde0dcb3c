package gate

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"golang.org/x/perf/benchunit"

	"kvbench/tools/comparable"
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
			return nil, fmt.Errorf("%s", strings.Join(append([]string{s.Name + " holds no usable benchmark result"}, s.Notes...), "; "))
		}
	}
	key := keys(old, new)
	before, order := old.index(key)
	after, newOrder := new.index(key)
	r := &Report{Options: o, Notes: slices.Concat(old.Notes, new.Notes)}
	var defaults comparable.Defaults
	for _, name := range order {
		if after[name] != nil {
			r.Refusals = append(r.Refusals, mismatches(name, before[name], after[name], o.Ignore, &defaults)...)
		}
	}
	if len(r.Refusals) > 0 {
		return r, nil
	}
	for _, name := range order {
		if how := before[name].defs[comparable.Simulated]; how != "" && how != comparable.Measured {
			r.Notes = append(r.Notes, name+": simulated "+how+" on both sides: this compares predictions, not measurements")
		}
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
	if err := checkNamed(o.Limits, old.labels, better); err != nil {
		return nil, err
	}
	for _, name := range order {
		r.bench(name, before[name], after[name], better)
	}
	r.correct()
	for _, label := range old.labels {
		if !slices.ContainsFunc(r.Rows, func(row Row) bool { return row.Unit == label }) {
			r.Ungated = append(r.Ungated, label)
		}
	}
	return r, nil
}

// checkNamed refuses metrics that were named and cannot be gated.
func checkNamed(l Limits, labels []string, better func(string) int) error {
	known := make(map[string]bool)
	for _, label := range labels {
		_, unit := benchunit.Tidy(1, label)
		known[unit] = true
	}
	for _, name := range l.named {
		_, unit := benchunit.Tidy(1, name)
		if !known[unit] {
			return fmt.Errorf("-max-regress %s: no benchmark of the old side has this metric; there are %s", name, strings.Join(slices.Sorted(slices.Values(labels)), " "))
		}
		if better(unit) == 0 {
			return fmt.Errorf("-max-regress %s: whether more or less of it is better is not known; put a line \"Unit %s better=higher\" (or lower) into the input", name, name)
		}
	}
	return nil
}

// headlines in the order of preference, tidied.
var headlines = []string{"read-B/s", "write-B/s", "sec/op"}

// wanted tells which metrics have to be kept to judge.
func (o Options) wanted(unit string) bool {
	_, named := o.Limits.of[unit]
	return o.All || named || slices.Contains(headlines, unit)
}

// headline is the metric by which a benchmark is gated when none is named.
func (b *bench) headline() string {
	for _, unit := range headlines {
		if len(b.values(unit)) > 0 {
			return unit
		}
	}
	return ""
}

func (r *Report) bench(name string, old, new *bench, better func(string) int) {
	headline := old.headline()
	if new == nil {
		row := Row{Bench: name, Verdict: Missing, Old: summarize(old.values(headline)), New: summarize(nil), Loss: math.NaN(), P: 1, Adjusted: 1}
		if m := old.of(headline); m != nil {
			row.Unit, row.tidy = m.label, m.unit
		}
		r.Rows = append(r.Rows, row)
		return
	}
	gated := 0
	for _, m := range old.metrics {
		limit, named := r.Options.Limits.limit(m.unit)
		samples := new.values(m.unit)
		if m.unit == headline || named {
			row := compare(name, m, samples, limit, better(m.unit))
			row.Verdict = Fine
			if len(samples) == 0 {
				row.Verdict = Missing
			} else if min(len(m.values), len(samples)) < minSamples {
				row.Verdict = Few
			}
			r.Rows = append(r.Rows, row)
			gated++
		} else if len(samples) > 0 && r.Options.All {
			r.Others = append(r.Others, compare(name, m, samples, limit, better(m.unit)))
		}
	}
	if gated == 0 {
		r.Notes = append(r.Notes, name+": nothing to gate: it has none of read-B/s, write-B/s and ns/op, and no metric of it was named")
	}
}

// compare fills a row that is not judged yet.
func compare(name string, old metric, new []float64, limit float64, better int) Row {
	row := Row{Bench: name, Unit: old.label, tidy: old.unit, Limit: limit, Loss: math.NaN(), P: 1, Adjusted: 1, Verdict: Shown}
	row.Old, row.New = summarize(old.values), summarize(new)
	if len(new) == 0 {
		return row
	}
	if better != 0 {
		row.Loss = loss(row.Old.Median, row.New.Median, better)
	}
	row.P = differ(old.values, new)
	row.Adjusted = row.P
	return row
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
	for _, row := range r.Rows {
		if row.Verdict != Missing {
			r.Tested++
		}
	}
	need := needed(r.Tested, r.Options.Alpha)
	for i := range r.Rows {
		if r.Rows[i].Verdict == Few {
			r.Rows[i].Need = need
		}
	}
}
