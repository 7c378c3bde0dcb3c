package gate

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"

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
	Bench string
	*stats.Metric
	// Loss is the share of the old median by which the new one is worse, negative = better; NaN
	// when no direction is known.
	Loss        float64
	Limit       float64
	P, Adjusted float64 // before and after Holm's correction
	Trials      [2]int  // of each side, with the metric or without
	Verdict     Verdict
}

// The runs of the table that is judged.
const oldSide, newSide = 0, 1

func (r Row) old() stats.Cell { return r.Cells[oldSide] }
func (r Row) new() stats.Cell { return r.Cells[newSide] }

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
	Rows     []Row // gated ones, in the order of the old side
	Others   []Row // with Options.All what else both sides measured, not gated
	Notes    []string
	Family   int      // metrics that were tested together
	Tested   int      // that would have been, with samples enough
	Refusals []string // why the sides cannot be compared, each reason once
}

// Failed tells whether the gate says no.
func (r *Report) Failed() bool {
	return slices.ContainsFunc(r.Rows, func(row Row) bool { return r.fails(row.Verdict) })
}

// fails says whether a verdict makes the gate say no. Too few samples and a missing benchmark do
// unless they are allowed: nothing was found because nothing was looked at.
func (r *Report) fails(v Verdict) bool {
	return v == Worse || v == Few && !r.Options.AllowFew || v == Missing && !r.Options.AllowMissing
}

// Judge compares two sides, which are the runs of a table. The error says that the question itself
// is wrong: nothing to compare, a metric that nobody measured or whose direction nobody knows. A
// report with refusals has no rows.
func Judge(t *stats.Table, o Options) (*Report, error) {
	r := &Report{Options: o, Notes: t.Notes}
	var old, both []*stats.Benchmark
	var added []string
	for _, b := range t.Benchmarks {
		if b.Settings[oldSide] == nil {
			added = append(added, b.Name+": only in new, nothing to compare it with")
			continue
		}
		old = append(old, b)
		if b.Settings[newSide] != nil {
			both = append(both, b)
		}
	}
	// One benchmark that was measured in another way refuses all: a family of which a part was
	// left out would pass on what remains.
	if r.Refusals = refusals(t.Benchmarks, o.Ignore); len(r.Refusals) > 0 {
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
	metrics := oldMetrics(old)
	if err := checkNamed(o.Limits, metrics); err != nil {
		return nil, err
	}
	for _, b := range old {
		r.bench(b)
	}
	r.correct()
	r.Notes = append(r.Notes, added...)
	ungated := labels(slices.DeleteFunc(metrics, func(m *stats.Metric) bool {
		return slices.ContainsFunc(r.Rows, func(row Row) bool { return row.Label == m.Label })
	}))
	if len(ungated) > 0 && !o.All {
		r.Notes = append(r.Notes, fmt.Sprintf("not gated: %s (-all shows them, -max-regress "+
			"METRIC=PERCENT gates one)", strings.Join(ungated, ", ")))
	}
	return r, nil
}

// refusals are the settings in which a benchmark that only one side has differs from one of that
// name that only the other side has: nobody can say that either is missing.
func refusals(all []*stats.Benchmark, ignore []string) (lines []string) {
	type reason struct{ name, old, new string }
	var order []reason
	benches := map[reason][]string{}
	for _, a := range all {
		for _, b := range all {
			if a.Plain != b.Plain || a.Settings[newSide] != nil || b.Settings[oldSide] != nil {
				continue
			}
			for _, d := range load.Differences(a.Settings[oldSide], b.Settings[newSide], ignore) {
				why := reason{d.Name, d.Old[0], d.New[0]}
				if benches[why] == nil {
					order = append(order, why)
				}
				if !slices.Contains(benches[why], a.Plain) {
					benches[why] = append(benches[why], a.Plain)
				}
			}
		}
	}
	for _, why := range order {
		where := benches[why][0]
		if len(benches[why]) > 1 {
			where += " and others"
		}
		advice := "such numbers mean different things; measure both sides alike"
		if !load.Defines(why.name) {
			advice = "measure both sides alike, or give -ignore " + why.name +
				" if that is what you compare"
		}
		lines = append(lines, fmt.Sprintf("refused: %s differs (%s against %s in %s): %s",
			why.name, why.old, why.new, where, advice))
	}
	return lines
}

// oldMetrics are those of the old side, one of each label, in the order of the input.
func oldMetrics(old []*stats.Benchmark) (list []*stats.Metric) {
	for _, b := range old {
		for _, m := range b.Metrics {
			if m.Cells[oldSide].N() > 0 && !slices.Contains(labels(list), m.Label) {
				list = append(list, m)
			}
		}
	}
	return list
}

// labels are the metrics as they are written.
func labels(metrics []*stats.Metric) (list []string) {
	for _, m := range metrics {
		list = append(list, m.Label)
	}
	return list
}

// checkNamed refuses metrics that were named and cannot be gated: one that nobody measured is a
// slip of the finger, and a gate that never looks at anything.
func checkNamed(l Limits, metrics []*stats.Metric) error {
	for _, name := range l.named {
		// Names are compared as benchfmt tidies them: ns/op is sec/op inside.
		_, unit := benchunit.Tidy(1, name)
		i := slices.IndexFunc(metrics, func(m *stats.Metric) bool { return m.Unit == unit })
		if i < 0 {
			there, why := slices.Sorted(slices.Values(labels(metrics))), ""
			if percentile.MatchString(name) {
				why = " (a trial has a percentile with enough operations alone: a longer " +
					"-benchtime has more)"
			}
			return fmt.Errorf("-max-regress %s: no benchmark of the old side has this metric%s; "+
				"there are %s", name, why, strings.Join(there, " "))
		}
		if metrics[i].Better == 0 {
			return fmt.Errorf("-max-regress %s: whether more or less of it is better is not "+
				"known; put a line \"Unit %s better=higher\" (or lower) into the input", name, name)
		}
	}
	return nil
}

// headline is the metric by which a benchmark is gated when none is named.
func headline(b *stats.Benchmark) *stats.Metric {
	for _, unit := range stats.Headlines {
		if b.Cell(unit, oldSide).N() > 0 {
			return b.Metric(unit)
		}
	}
	return nil
}

// bench makes the rows of a benchmark that the old side has.
func (r *Report) bench(b *stats.Benchmark) {
	main, before := headline(b), len(r.Rows)
	// If the benchmark is gone, one row stands for all its metrics.
	gone := b.Settings[newSide] == nil
	if gone {
		main = cmp.Or(main, b.Metrics[0])
	}
	for _, m := range b.Metrics {
		limit, named := r.Options.Limits.limit(m.Unit)
		row := newRow(b.Name, m, limit)
		row.Trials = [2]int{trials(b, oldSide), trials(b, newSide)}
		old, new := row.old().N(), row.new().N()
		// What is gated: the headline and what is named. The rest is shown with -all. A benchmark
		// that is gone is missing even where the old side has no number of it that can be used.
		// So is a percentile not skipped because the old side's trials had too few operations.
		gated := m == main || named && !gone
		if !gated || old == 0 && !gone && !percentile.MatchString(m.Label) {
			if old > 0 && new > 0 && r.Options.All {
				r.Others = append(r.Others, row)
			}
			continue
		}
		switch {
		case new == 0 && (gone || !percentile.MatchString(m.Label)):
			row.Verdict = Missing
		// Trials with too few operations for a percentile are not any: they are the slow ones.
		case min(old, new) < stats.LeastSamples, row.lacksOperations():
			row.Verdict = Few
		default:
			row.Verdict = Fine
		}
		r.Rows = append(r.Rows, row)
	}
	if len(r.Rows) == before {
		r.Notes = append(r.Notes, b.Name+": nothing to gate: it has none of read-B/s, write-B/s "+
			"and ns/op, and no metric of it was named")
	}
}

// percentile is a unit that a trial has only with enough samples behind it.
var percentile = regexp.MustCompile(`-p[0-9]+-ns$`)

// trials is how many a side has of a benchmark: not every trial has every metric.
func trials(b *stats.Benchmark, side int) (n int) {
	for _, m := range b.Metrics {
		n = max(n, m.Cells[side].N())
	}
	return n
}

// lacksOperations says whether trials have no percentile because of too few operations.
func (r Row) lacksOperations() bool {
	return percentile.MatchString(r.Label) &&
		r.old().N()+r.new().N() < r.Trials[oldSide]+r.Trials[newSide]
}

// newRow is not judged yet.
func newRow(name string, m *stats.Metric, limit float64) Row {
	row := Row{Bench: name, Metric: m, Limit: limit, Loss: math.NaN(), P: 1, Adjusted: 1,
		Verdict: Shown}
	// Without a change there is nothing to test: p stays 1.
	if c := row.new().Change; c != nil {
		row.P, row.Adjusted = c.P, c.P
		if m.Better != 0 {
			row.Loss = -float64(m.Better) * c.Ratio
		}
	}
	return row
}

// correct applies Holm's method to what has samples enough, and finds what could not have been
// significant however large the difference.
func (r *Report) correct() {
	// Rows with too few samples are no part of the family: they could not raise an alarm, and
	// counting them would hide the alarms of the others.
	var family []*Row
	var p, least []float64
	// So far Fine only means that a row can be tested.
	for i := range r.Rows {
		row := &r.Rows[i]
		if row.Verdict == Fine {
			family = append(family, row)
			p = append(p, row.P)
			least = append(least, stats.LeastP(row.old().N(), row.new().N()))
		}
		if row.Verdict != Missing {
			r.Tested++
		}
	}
	r.Family = len(family)
	// The same correction of the least p values that these samples can have says which rows could
	// not have been significant, however large the difference.
	adjusted, best := stats.Holm(p), stats.Holm(least)
	for k, row := range family {
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
}
