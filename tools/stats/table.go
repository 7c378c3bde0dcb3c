package stats

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"golang.org/x/perf/benchfmt"
	"golang.org/x/perf/benchmath"

	"kvbench/kvbench/units"
	"kvbench/tools/load"
)

// Table is everything measured, in the order in which it was read.
type Table struct {
	Runs       []string // sources
	Labels     []string // what to call them: the file's name if it is unique
	Benchmarks []*Benchmark
	Notes      []string // omissions and their reasons
}

// Benchmark is one benchmark with its metrics.
type Benchmark struct {
	Name     string
	Plain    string // the name without the settings that distinguish it
	Metrics  []*Metric
	Trials   [][]*load.Record // by run: the complete ones, else all
	Settings []*load.Settings // by run; nil where the run has no trial of it
	Count    []int            // trials by run, with numbers or without
	Failed   [][]string       // by run: how the trials without numbers ended

	Simulated bool // predictions, and marked as such in the name
}

// Metric is one unit of one benchmark.
type Metric struct {
	Unit   string // tidied: sec instead of ns
	Label  string // as written
	Better int    // +1 higher, -1 lower, 0 unknown
	Cells  []Cell // by run
}

// Cell is one run's values, in the order of its trials.
type Cell struct {
	Side
	Summary benchmath.Summary
	CV      float64 // standard deviation ÷ mean, not a number below two samples
	Change  *Change // against the first run; nil for that and where one has no sample
}

// Confidence of every interval.
const Confidence = 0.95

// sample sorts a copy.
func sample(values []float64) *benchmath.Sample {
	return benchmath.NewSample(slices.Clone(values), &benchmath.DefaultThresholds)
}

// N is the number of trials.
func (c Cell) N() int { return len(c.Values) }

// Change compares a run with the first one.
type Change struct {
	*Contrast
	Ratio float64 // by which the run's median is larger, as a share of the first one's
	P     float64 // that it differs in either direction, for this cell alone

	// Adjusted is P after Holm's correction over the headline metrics of the pair of runs that have
	// samples enough, as a gate has them; P for others.
	Adjusted float64
	Headline bool
	TooFew   string // why no difference could have been found, empty where one could
}

// newChange compares two cells that have trials and a summary.
func newChange(first, c Cell) *Change {
	x := NewContrast(first.Side, c.Side)
	p := min(1, 2*min(x.P(1, 0), x.P(-1, 0)))
	change := &Change{Contrast: x, P: p, Adjusted: p}
	if was, is := first.Summary.Center, c.Summary.Center; is != was {
		change.Ratio = (is - was) / math.Abs(was)
	}
	if min(first.N(), c.N()) < LeastSamples || 2*x.Least() >= Alpha {
		change.TooFew = fmt.Sprintf("need >= %d samples to detect a difference at alpha level %g",
			LeastSamples, Alpha)
	}
	return change
}

// Alpha is the level below which a difference counts as significant.
const Alpha = 0.05

// Judged is 1 where the run has more than the first one, -1 where it has less, and 0 where that is
// not shown: the difference may be chance after correction, or the medians differ the other way
// than the trials within their blocks. The gate and all documents call a run better by it. Other
// metrics than the headline are not judged: of twenty metrics, one differs by chance.
func (c *Change) Judged(alpha float64) int {
	d := int(math.Copysign(1, c.Ratio))
	shown := c.Headline && c.Adjusted < alpha && c.Contrast.P(-d, 0) < c.Contrast.P(d, 0)
	if !shown || c.Ratio == 0 {
		return 0
	}
	return d
}

// Metric returns the metric of a tidied unit, or nil.
func (b *Benchmark) Metric(unit string) *Metric {
	for _, m := range b.Metrics {
		if m.Unit == unit {
			return m
		}
	}
	return nil
}

// Cell is a run's values of a tidied unit, empty without such a benchmark or metric.
func (b *Benchmark) Cell(unit string, run int) (c Cell) {
	if b == nil {
		return c
	}
	if m := b.Metric(unit); m != nil {
		c = m.Cells[run]
	}
	return c
}

// Headlines are the metrics by which a benchmark is judged unless another is named: the first that
// it has.
var Headlines = []string{"read-B/s", "write-B/s", "sec/op"}

// Headline is the benchmark's, else its first metric. It is nil when there is none.
func (b *Benchmark) Headline() *Metric {
	for _, u := range Headlines {
		if m := b.Metric(u); m != nil {
			return m
		}
	}
	if len(b.Metrics) > 0 {
		return b.Metrics[0]
	}
	return nil
}

// Build arranges the records for people. A run in virtual time is a benchmark of its own,
// "Synthetic (simulated)": a prediction shares no row, no median and no chart's bar with a
// measurement. Metrics have the order of the suite's units, others follow.
func Build(records []*load.Record, units benchfmt.UnitMetadataMap, ignore ...string) *Table {
	t := arrange(records, units, ignore, true)
	for _, b := range t.Benchmarks {
		slices.SortStableFunc(b.Metrics,
			func(x, y *Metric) int { return rank(x.Unit) - rank(y.Unit) })
	}
	for run := 1; run < len(t.Runs); run++ {
		t.correct(run)
	}
	return t
}

// Gather arranges the records for a gate. Predictions and measurements of one name are trials of one
// benchmark, and metrics have the order of the input.
func Gather(records []*load.Record, units benchfmt.UnitMetadataMap, ignore ...string) *Table {
	return arrange(records, units, ignore, false)
}

// tableTrial is a record with what a table needs of it.
type tableTrial struct {
	*load.Record
	run         int
	base, procs string // of the benchmark's name as it was printed
	settings    *load.Settings
	prediction  bool // and marked as such
}

// gather prepares the records and lists their runs.
func gather(records []*load.Record, mark bool) (runs []string, trials []tableTrial) {
	// Thousands of lines share the benchmark's name and the configuration in force at the line, and
	// have the same settings.
	type line struct {
		name   string
		config *load.Setting
	}
	same := map[line]*load.Settings{}
	settings := func(rec *load.Record) *load.Settings {
		if !rec.IsLine() || len(rec.Config) == 0 {
			return rec.Settings()
		}
		at := line{rec.Name, &rec.Config[0]}
		if same[at] == nil {
			same[at] = rec.Settings()
		}
		return same[at]
	}
	for _, rec := range records {
		t := tableTrial{Record: rec, run: slices.Index(runs, rec.Source), settings: settings(rec)}
		if t.run < 0 {
			t.run = len(runs)
			runs = append(runs, rec.Source)
		}
		t.base, t.procs = load.SplitProcs(rec.Name)
		t.prediction = mark && t.settings.Simulated()
		trials = append(trials, t)
	}
	return runs, trials
}

// arrange groups the trials and compares each run with the first. Trials of one name that were
// measured with different settings belong to benchmarks of their own, whose names say in what they
// differ: "StorageCeiling/op=read [chunk-size=16KiB]". ignore lists settings in which trials of a
// benchmark may differ, mark gives predictions names of their own.
func arrange(records []*load.Record, units benchfmt.UnitMetadataMap, ignore []string, mark bool,
) *Table {
	runs, trials := gather(records, mark)
	t := &Table{Runs: runs, Labels: labels(runs)}
	byName := map[string][]*Benchmark{}
	type place struct {
		name     string
		run      int
		settings *load.Settings
	}
	known := map[place]*Benchmark{}
	for i, name := range names(trials) {
		trial := trials[i]
		at := place{name, trial.run, trial.settings}
		b := known[at]
		if b == nil {
			k := slices.IndexFunc(byName[name],
				func(b *Benchmark) bool { return b.fits(trial.settings, ignore) })
			if k < 0 {
				k = len(byName[name])
				b := newBenchmark(name, trial.prediction, len(t.Runs))
				byName[name], t.Benchmarks = append(byName[name], b), append(t.Benchmarks, b)
			}
			b = byName[name][k]
			if b.Settings[trial.run] == nil {
				b.Settings[trial.run] = &load.Settings{}
			}
			b.Settings[trial.run].Add(trial.settings)
			known[at] = b
		}
		t.add(b, trial)
	}
	for _, b := range t.Benchmarks {
		if all := byName[b.Plain]; all[0] == b {
			t.Notes = append(t.Notes, distinguish(all, ignore)...)
		}
		for run, trials := range b.Trials {
			b.Trials[run] = usable(trials)
		}
		for _, m := range b.Metrics {
			m.Better = units.GetBetter(m.Unit)
			m.summarize(units.GetAssumption(m.Unit))
		}
	}
	return t
}

// newBenchmark has no metric yet.
func newBenchmark(name string, simulated bool, runs int) *Benchmark {
	return &Benchmark{Plain: name, Name: name, Simulated: simulated,
		Trials: make([][]*load.Record, runs), Settings: make([]*load.Settings, runs),
		Count: make([]int, runs), Failed: make([][]string, runs)}
}

// fits reports whether a trial was measured as the trials of all runs were.
func (b *Benchmark) fits(s *load.Settings, ignore []string) bool {
	return !slices.ContainsFunc(b.Settings, func(have *load.Settings) bool {
		return len(load.Differences(have, s, ignore)) > 0
	})
}

// add adds a trial to its benchmark.
func (t *Table) add(b *Benchmark, trial tableTrial) {
	b.Count[trial.run]++
	b.Trials[trial.run] = append(b.Trials[trial.run], trial.Record)
	if failure := trial.Failure(); failure != "" {
		b.Failed[trial.run] = append(b.Failed[trial.run], failure)
	}
	for _, v := range trial.Values {
		m := b.metric(v.Unit, cmp.Or(v.OrigUnit, v.Unit))
		// An infinite or missing value cannot be part of a median, and is reported.
		if units.Finite(v.Value) != nil {
			m.Cells[trial.run].Add(v.Value, trial.Block())
			continue
		}
		note := fmt.Sprintf("%s %s%s: %s is %v and was left out", t.Runs[trial.run], trial.base,
			trial.procs, m.Label, v.Value)
		if !slices.Contains(t.Notes, note) {
			t.Notes = append(t.Notes, note)
		}
	}
}

// metric finds the metric of a unit, or adds one with a cell for each run. A benchmark has about a
// dozen, so that a list is as good as a map and keeps the order of the line.
func (b *Benchmark) metric(unit, label string) *Metric {
	m := b.Metric(unit)
	if m == nil {
		m = &Metric{Unit: unit, Label: label, Cells: make([]Cell, len(b.Trials))}
		b.Metrics = append(b.Metrics, m)
	}
	return m
}

// usable are the trials whose numbers are in charts and medians. A failed trial is used only if
// there is no other: its time series may show why it failed.
func usable(trials []*load.Record) []*load.Record {
	complete := slices.DeleteFunc(slices.Clone(trials),
		func(rec *load.Record) bool { return len(rec.Values) == 0 })
	if len(complete) == 0 {
		return trials
	}
	return complete
}

// summarize fills the cells.
func (m *Metric) summarize(assume benchmath.Assumption) {
	first := &m.Cells[0]
	for run := range m.Cells {
		c := &m.Cells[run]
		if len(c.Values) == 0 {
			continue
		}
		c.Summary = assume.Summary(sample(c.Values), Confidence)
		c.CV = units.Variation(c.Values)
		// The others are compared with the first run.
		if run > 0 && len(first.Values) > 0 {
			c.Change = newChange(*first, *c)
		}
	}
}

// correct applies Holm's correction to the headline metrics of one run against the first.
func (t *Table) correct(run int) {
	var family []*Change
	for _, b := range t.Benchmarks {
		m := b.Headline()
		if m == nil || m.Cells[run].Change == nil {
			continue
		}
		c := m.Cells[run].Change
		c.Headline = true
		// Tests that cannot be significant would only lower the power of the others.
		if min(m.Cells[0].N(), m.Cells[run].N()) >= LeastSamples {
			family = append(family, c)
		}
	}
	Correct(family)
}
