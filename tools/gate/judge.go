package gate

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/perf/benchunit"

	"kvbench/kvbench/merge"
	"kvbench/tools/load"
	"kvbench/tools/stats"
)

// Verdict is the answer for one metric of one benchmark.
type Verdict string

// The verdicts, and the outcome of each unless an option allows it.
const (
	Fine    Verdict = "ok"
	Better  Verdict = "better"  // surely
	Worse   Verdict = "worse"   // surely by more than the limit: lost
	Missing Verdict = "missing" // there in old, not in new: lost
	Failed  Verdict = "failed"  // trials without numbers: lost if new ones, else undecided
	Few     Verdict = "few"     // too few samples to find any loss: undecided
	Blind   Verdict = "blind"   // a loss of twice the limit would often pass: undecided
	Shown   Verdict = "shown"   // not gated
)

// Outcome is the gate's answer for a row, and for all rows.
type Outcome int

// The outcomes, the worst last.
const (
	Passed    Outcome = iota
	Undecided         // the data do not decide it
	Lost
)

// Row is one metric of one benchmark. All formats print it from the row alone.
type Row struct {
	Bench string
	*stats.Metric
	stats.Sight         // of the family's rows, at alpha ÷ its size
	Limit       float64 // the loss that is allowed, a share
	P, Adjusted float64 // that the loss is larger, before and after Holm's correction
	Trials      [2]int  // of each side, with the metric or without
	Stuck       bool    // most trials gave one and the same number
	Lacks       [2]int  // of Failed: how many trials of each side have no numbers
	Why         string  // of Failed: how they ended
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
	Count        int // trials that each benchmark should have on each side, 0 = as it has
	AllowFew     bool
	AllowBlind   bool
	AllowMissing bool
	AllowFailed  bool
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
	InBlocks bool     // all of the family are compared within blocks
	Refusals []string // why the sides cannot be compared, each reason once
}

// Outcome is the worst of all rows.
func (r *Report) Outcome() (worst Outcome) {
	for _, row := range r.Rows {
		worst = max(worst, r.outcome(row))
	}
	return worst
}

// outcome is the gate's answer for a row. A row that could not be judged has not passed, unless an
// option allows it.
func (r *Report) outcome(row Row) Outcome {
	switch o := r.Options; {
	case row.Verdict == Worse, row.Verdict == Missing && !o.AllowMissing,
		row.Verdict == Failed && !o.AllowFailed && row.Lacks[newSide] > 0:
		return Lost
	case row.Verdict == Few && !o.AllowFew, row.Verdict == Blind && !o.AllowBlind,
		// The old side's remaining trials are the ones that went well.
		row.Verdict == Failed && !o.AllowFailed:
		return Undecided
	}
	return Passed
}

// Judge compares two sides, which are the runs of a table. The error says that the question itself
// is wrong: there is nothing to compare, or a named metric was not measured or has no known
// direction. A report with refusals has no rows.
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
	// One benchmark with different settings refuses all: a family that lacks a part would pass on
	// the rest.
	if r.Refusals = refusals(t.Benchmarks, o.Ignore); len(r.Refusals) > 0 {
		return r, nil
	}
	// Predictions may be compared with each other, and are marked as such.
	for _, b := range both {
		if s := b.Settings[oldSide]; s.Simulated() {
			r.Notes = append(r.Notes, b.Name+": simulated "+s.Text(merge.SettingSimulated)+
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

// oldMetrics are the metrics of the old side, one of each label, in the order of the input.
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

// labels returns the metrics' labels.
func labels(metrics []*stats.Metric) (list []string) {
	for _, m := range metrics {
		list = append(list, m.Label)
	}
	return list
}

// checkNamed refuses named metrics that cannot be gated. A metric that was not measured is a typing
// error, and such a gate would never check anything.
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
	if gone && len(b.Metrics) > 0 {
		main = cmp.Or(main, b.Metrics[0])
	}
	r.failures(b)
	for _, m := range b.Metrics {
		limit, named := r.Options.Limits.limit(m.Unit)
		row := Row{Bench: b.Name, Metric: m, Limit: limit, P: 1, Adjusted: 1, Verdict: Shown,
			Stuck: stuck(b, m)}
		row.Trials = [2]int{b.Count[oldSide] - len(b.Failed[oldSide]),
			b.Count[newSide] - len(b.Failed[newSide])}
		if c := row.new().Change; c != nil && m.Better != 0 {
			row.P = c.Contrast.P(m.Better, limit)
			row.Adjusted = row.P
		}
		old, new := row.old().N(), row.new().N()
		// Gated are the headline and the named metrics; -all shows the rest. A missing benchmark
		// counts as missing even where the old side has no usable number of it. A percentile is not
		// skipped because the old side's trials had too few operations.
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
		// Trials with too few operations for a percentile are no random choice: they are the slow
		// ones.
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

// failures makes a row of a benchmark's trials that have no numbers, or that are fewer than
// Options.Count.
func (r *Report) failures(b *stats.Benchmark) {
	row := Row{Bench: b.Name, Metric: &stats.Metric{Label: "trials", Cells: make([]stats.Cell, 2)},
		Verdict: Failed}
	var why []string
	for side, run := range b.Count {
		if b.Settings[side] == nil {
			continue // MISSING says it
		}
		row.Trials[side] = max(run, r.Options.Count)
		row.Lacks[side] = row.Trials[side] - run + len(b.Failed[side])
		name := [2]string{"old: ", "new: "}[side]
		for _, text := range b.Failed[side] {
			if text = name + text; !slices.Contains(why, text) {
				why = append(why, text)
			}
		}
		if run < r.Options.Count {
			why = append(why, fmt.Sprintf("%s%d left nothing behind", name, r.Options.Count-run))
		}
	}
	if row.Why = strings.Join(why, "; "); row.Why != "" {
		r.Rows = append(r.Rows, row)
	}
}

// percentile is a unit that a trial has only with enough samples behind it.
var percentile = regexp.MustCompile(`-p[0-9]+-ns$`)

// lacksOperations says whether trials have no percentile because of too few operations.
func (r Row) lacksOperations() bool {
	return percentile.MatchString(r.Label) &&
		r.old().N()+r.new().N() < r.Trials[oldSide]+r.Trials[newSide]
}

// stuck reports whether most trials of both sides have exactly one bandwidth. No storage is so
// even: the window or a limit of the control group decided it, and would be the same on another
// drive. In virtual time equal bandwidths are expected.
func stuck(b *stats.Benchmark, m *stats.Metric) bool {
	if slices.ContainsFunc(b.Settings,
		func(s *load.Settings) bool { return s != nil && s.Simulated() }) {
		return false
	}
	times, most, all := map[float64]int{}, 0, 0
	for _, c := range m.Cells {
		for _, v := range c.Values {
			times[v]++
			most, all = max(most, times[v]), all+1
		}
	}
	return strings.HasSuffix(m.Unit, "B/s") && all > 2 && 2*most > all
}

// correct judges all rows with enough samples together.
func (r *Report) correct() {
	// Rows with fewer trials than any test needs are no part of the family: they could not raise an
	// alarm, and counting them would hide the alarms of the others.
	var family []*Row
	var changes []*stats.Change
	var losses, least []float64
	r.InBlocks = true
	for i := range r.Rows {
		row := &r.Rows[i]
		// So far Fine only means that a row can be tested.
		if row.Verdict == Fine {
			c := row.new().Change
			family, changes = append(family, row), append(changes, c)
			losses, least = append(losses, row.P), append(least, c.Least())
			r.InBlocks = r.InBlocks && row.old().InBlocks() && row.new().InBlocks()
		}
		if row.Verdict != Missing && row.Verdict != Failed {
			r.Tested++
		}
	}
	r.Family = len(family)
	r.InBlocks = r.InBlocks && r.Family > 0
	alpha := r.Options.Alpha
	stats.Correct(changes)
	losses, least = stats.Holm(losses), stats.Holm(least)
	for k, row := range family {
		c := changes[k]
		row.Adjusted = losses[k]
		row.Sight = stats.Sight{Sees: math.NaN(), Power: math.NaN()}
		if row.Better != 0 {
			row.Sight = c.Sight(row.Better, row.Limit, alpha/float64(r.Family))
		}
		switch {
		case least[k] >= alpha: // whatever the difference
			row.Verdict = Few
		case row.Better == 0:
		case row.Adjusted < alpha:
			row.Verdict = Worse
			// The bound at the level that the correction left to this row.
			row.AtLeast = c.Sight(row.Better, row.Limit, alpha*row.P/row.Adjusted).AtLeast
		case row.Stuck:
			row.Verdict = Blind
		case c.Judged(alpha) == row.Better:
			row.Verdict = Better
		case row.Sees > row.Limit:
			row.Verdict = Blind
		}
	}
	if !r.InBlocks && r.Family > 0 {
		r.Notes = append(r.Notes, "old and new did not take turns, or their lines do not say so: "+
			"what changed on the machine in between looks like a loss or hides one (kvreport "+
			"turns, make gate)")
	}
}
