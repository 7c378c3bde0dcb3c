package gate

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/perf/benchunit"

	"kvbench/kvbench/merge"
	"kvbench/kvbench/units"
	"kvbench/tools/load"
	"kvbench/tools/stats"
)

// Verdict is the answer for one metric of one benchmark.
type Verdict string

// The verdicts, and the outcome of each unless an option allows it.
const (
	Fine    Verdict = "ok"
	Better  Verdict = "better"  // significantly better
	Worse   Verdict = "worse"   // significantly worse than the limit: Lost
	Missing Verdict = "missing" // on the old side, not on the new one: Lost
	Failed  Verdict = "failed"  // trials without numbers: Lost if on the new side, else Undecided
	Few     Verdict = "few"     // too few samples to find any loss: Undecided
	Blind   Verdict = "blind"   // a loss of twice the limit would often pass: Undecided
	Shown   Verdict = "shown"   // not gated
)

// Outcome is the result of a row or of the gate.
type Outcome int

// The outcomes, worst last.
const (
	Passed    Outcome = iota
	Undecided         // the data do not decide
	Lost
)

// Row is one metric of one benchmark. All formats print only its fields.
type Row struct {
	Bench string
	*stats.Metric
	stats.Sight         // for rows of the family, at alpha ÷ its size
	Limit       float64 // the allowed loss, a share
	P, Adjusted float64 // of a loss above Limit, before and after Holm's correction
	Trials      [2]int  // by side, with or without a value of the metric
	Stuck       bool    // most trials have exactly the same value
	Lacks       [2]int  // for Failed: trials without numbers, by side
	Why         string  // for Failed: how these trials ended
	Verdict     Verdict
}

// The indices of the sides in Table.Runs.
const oldSide, newSide = 0, 1

func (r Row) old() stats.Cell { return r.Cells[oldSide] }
func (r Row) new() stats.Cell { return r.Cells[newSide] }

// Options are the options of a gate.
type Options struct {
	Alpha        float64
	Limits       Limits
	Count        int // the number of trials that each side should have; 0 = any
	AllowFew     bool
	AllowBlind   bool
	AllowMissing bool
	AllowFailed  bool
	All          bool     // also show metrics that are not gated
	Ignore       []string // settings in which the sides may differ
}

// Report is the result of a gate.
type Report struct {
	Options  Options
	Rows     []Row // gated metrics, in the order of the old side
	Others   []Row // with Options.All, the metrics of both sides that are not gated
	Notes    []string
	Family   []*Row   // the rows that were tested together
	Tested   int      // number of metrics that would be, with enough samples
	InBlocks bool     // all metrics of the family were compared within blocks
	Refusals []string // why the sides cannot be compared, each reason once
}

// Outcome returns the worst outcome of all rows.
func (r *Report) Outcome() (worst Outcome) {
	for _, row := range r.Rows {
		worst = max(worst, r.outcome(row))
	}
	return worst
}

// outcome returns the outcome of a row. A row that could not be judged passes only if an option allows
// it.
func (r *Report) outcome(row Row) Outcome {
	switch o := r.Options; {
	case row.Verdict == Worse, row.Verdict == Missing && !o.AllowMissing,
		row.Verdict == Failed && !o.AllowFailed && row.Lacks[newSide] > 0:
		return Lost
	case row.Verdict == Few && !o.AllowFew, row.Verdict == Blind && !o.AllowBlind,
		// If old trials failed, the remaining ones are a biased sample.
		row.Verdict == Failed && !o.AllowFailed:
		return Undecided
	}
	return Passed
}

// Judge compares the two sides of a table. It returns an error if a named metric was not measured or
// has no known direction. A report with refusals has no rows.
func Judge(t *stats.Table, o Options) (*Report, error) {
	r := &Report{Options: o, Notes: t.Notes}
	// One benchmark with different settings refuses the whole gate: without it the rest could pass.
	if r.Refusals = refusals(t.Benchmarks, o.Ignore); len(r.Refusals) > 0 {
		return r, nil
	}
	var old []*stats.Benchmark
	var added []string
	for _, b := range t.Benchmarks {
		s := b.Settings[oldSide]
		if s == nil {
			added = append(added, b.Name+": only in new, nothing to compare it with")
			continue
		}
		old = append(old, b)
		// Simulations may be compared with each other.
		if b.Settings[newSide] != nil && s.Simulated() {
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
		r.limits(b)
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

// oldMetrics returns the metrics of the old side, one per label, in the order of the input.
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

// checkNamed returns an error for a named metric that cannot be gated. A metric that the old side did
// not measure is probably misspelt, and a gate of it would check nothing.
func checkNamed(l Limits, metrics []*stats.Metric) error {
	for _, name := range l.named {
		// benchfmt tidies names: ns/op becomes sec/op.
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

// bench adds the rows of a benchmark of the old side: of its headlines and of the named metrics. A benchmark
// that is missing on the new side has a row even if the old side has no value.
func (r *Report) bench(b *stats.Benchmark) {
	before := len(r.Rows)
	r.failures(b)
	gone, main := b.Settings[newSide] == nil, b.Headlines()
	if gone && len(main) == 0 {
		main = b.Metrics[:min(1, len(b.Metrics))]
	}
	for _, m := range b.Metrics {
		row, named := r.row(b, m)
		old, new := row.old().N(), row.new().N()
		// A percentile is missing where a trial had too few operations.
		mayLack := !gone && percentile.MatchString(m.Label)
		gated := slices.Contains(main, m) && (old > 0 || gone) || named && !gone && (old > 0 || mayLack)
		switch {
		case !gated && old > 0 && new > 0 && r.Options.All:
			r.Others = append(r.Others, row)
			continue
		case !gated:
			continue
		case new == 0 && !mayLack:
			row.Verdict = Missing
		// The trials with too few operations for a percentile are the slow ones: leaving them out biases
		// the sample.
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

// row returns the row of a metric, not yet judged, and whether the user has named the metric.
func (r *Report) row(b *stats.Benchmark, m *stats.Metric) (row Row, named bool) {
	row = Row{Bench: b.Name, Metric: m, P: 1, Adjusted: 1, Verdict: Shown, Stuck: stuck(b, m)}
	row.Limit, named = r.Options.Limits.limit(m.Unit)
	for side := range row.Trials {
		row.Trials[side] = b.Count[side] - len(b.Failed[side])
	}
	if c := row.new().Change; c != nil && m.Better != 0 {
		row.P = c.Contrast.P(m.Better, row.Limit)
		row.Adjusted = row.P
	}
	return row, named
}

// limits notes what limited the trials of a benchmark if it was not the storage, and whether the client took
// more time for each byte. A loss is then perhaps of the client or of the load, and not of the storage.
func (r *Report) limits(b *stats.Benchmark) {
	if b.Settings[newSide] == nil {
		return
	}
	if !b.Comparable(newSide) {
		r.Notes = append(r.Notes, fmt.Sprintf("%s: old %s; new %s: such rates compare more than the storage",
			b.Name, b.VerdictCounts(oldSide), b.VerdictCounts(newSide)))
	}
	const unit, shows, cores = "cpu-sec/B", 1.2, 0.5
	before, after := b.Cell(unit, oldSide), b.Cell(unit, newSide)
	rate := b.Cell("read-B/s", newSide).Summary.Center + b.Cell("write-B/s", newSide).Summary.Center
	// A client that uses less of a core is no cause: a slower drive leaves more of its fixed cost to each byte.
	if before.N() == 0 || after.N() == 0 || after.Summary.Center < shows*before.Summary.Center ||
		after.Summary.Center*rate < cores {
		return
	}
	text := units.OfLine(unit)
	r.Notes = append(r.Notes, fmt.Sprintf("%s: the client's CPU time went from %s to %s: a loss may be the "+
		"client's", b.Name, text(before.Summary.Center), text(after.Summary.Center)))
}

// failures adds a row for a benchmark with trials without numbers, or with fewer trials than
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

// percentile matches a unit that a trial has only with enough samples.
var percentile = regexp.MustCompile(`-p[0-9]+-ns$`)

// lacksOperations reports whether a trial lacks the percentile because it had too few operations.
func (r Row) lacksOperations() bool {
	return percentile.MatchString(r.Label) &&
		r.old().N()+r.new().N() < r.Trials[oldSide]+r.Trials[newSide]
}

// stuck reports whether most trials of both sides have exactly the same bandwidth. The window or a
// limit of the control group decided it, not the storage. Simulations are exempt: equal bandwidths are
// expected.
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

// correct judges all rows with enough samples as one family. Rows with fewer than LeastSamples trials are not
// in it: they cannot alarm, and would only lower the power of the others.
func (r *Report) correct() {
	var changes []*stats.Change
	var losses, least []float64
	for i := range r.Rows {
		row := &r.Rows[i]
		if row.Verdict == Fine { // so far this means that the row can be tested
			c := row.new().Change
			r.Family, changes = append(r.Family, row), append(changes, c)
			losses, least = append(losses, row.P), append(least, c.Least())
		}
		if row.Verdict != Missing && row.Verdict != Failed {
			r.Tested++
		}
	}
	r.InBlocks = len(r.Family) > 0 && !slices.ContainsFunc(r.Family,
		func(row *Row) bool { return !row.old().InBlocks() || !row.new().InBlocks() })
	stats.Correct(changes)
	losses, least = stats.Holm(losses), stats.Holm(least)
	for k, row := range r.Family {
		row.Adjusted = losses[k]
		row.Sight = stats.Sight{Sees: math.NaN(), Power: math.NaN()}
		if row.Better != 0 {
			row.Sight = changes[k].Sight(row.Better, row.Limit, r.level())
		}
		row.judge(changes[k], least[k], r.Options.Alpha)
	}
	if !r.InBlocks && len(r.Family) > 0 {
		r.Notes = append(r.Notes, "old and new did not take turns, or their lines do not say so: "+
			"what changed on the machine in between looks like a loss or hides one (kvreport "+
			"turns, make gate)")
	}
}

// judge sets the verdict of a row of the family. least is the least p value that its number of trials can
// have, after Holm's correction.
func (row *Row) judge(c *stats.Change, least, alpha float64) {
	switch {
	case least >= alpha:
		row.Verdict = Few
	case row.Better == 0:
	case row.Adjusted < alpha:
		row.Verdict = Worse
		// The bound at the level that Holm's correction left to this row.
		row.AtLeast = c.Sight(row.Better, row.Limit, alpha*row.P/row.Adjusted).AtLeast
	case row.Stuck:
		row.Verdict = Blind
	case c.Judged(alpha) == row.Better:
		row.Verdict = Better
	case row.Sees > row.Limit:
		row.Verdict = Blind
	}
}
