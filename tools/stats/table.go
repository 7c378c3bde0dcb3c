package stats

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/perf/benchfmt"
	"golang.org/x/perf/benchmath"

	"kvbench/kvbench/merge"
	"kvbench/kvbench/units"
	"kvbench/tools/load"
)

// Table has all benchmarks and runs, in the order in which they were read.
type Table struct {
	Runs       []string // load.Record.Source of each run
	Labels     []string // the name of each run: -name, or the last element of its path, if unique
	Benchmarks []*Benchmark
	Notes      []string // what was left out, and why
}

// Benchmark is one benchmark with its metrics.
type Benchmark struct {
	Name     string
	Plain    string // the name without distinguishing settings
	Metrics  []*Metric
	Trials   [][]*load.Record // by run: the complete trials, or all if none is complete
	Settings []*load.Settings // by run; nil if the run has no trial of this benchmark
	Count    []int            // by run: number of trials, with or without numbers
	Failed   [][]string       // by run: how the trials without numbers ended

	Simulated bool // simulated, and marked so in the name
}

// Metric is one unit of one benchmark.
type Metric struct {
	Unit   string // tidied: sec instead of ns
	Label  string // as printed
	Better int    // +1 higher, -1 lower, 0 unknown
	Cells  []Cell // by run
}

// Cell has one run's values, in the order of its trials.
type Cell struct {
	Side
	Summary benchmath.Summary
	CV      float64 // standard deviation ÷ mean, NaN with fewer than two samples
	Change  *Change // against the first run; nil for the first run, or if one of them has no sample
}

// Confidence is the level of every interval.
const Confidence = 0.95

// N returns the number of trials.
func (c Cell) N() int { return len(c.Values) }

// Change compares a run with the first run.
type Change struct {
	*Contrast
	Ratio float64 // difference of the medians ÷ the first run's median
	P     float64 // two-sided p value of this cell alone

	// Adjusted is P after Holm's correction over the headline metrics of this pair of runs that can be
	// judged. For other metrics it is P.
	Adjusted float64
	Headline bool
	Unjudged string // why no difference can be shown: NotLimited, or too few trials; else ""

	few bool // fewer than LeastSamples trials of a side
}

// newChange compares two cells that have trials and summaries. comparable is false if the trials of
// one cell were mostly not limited by the storage.
func newChange(first, c Cell, comparable bool) *Change {
	x := NewContrast(first.Side, c.Side)
	p := min(1, 2*min(x.P(1, 0), x.P(-1, 0)))
	change := &Change{Contrast: x, P: p, Adjusted: p, few: min(first.N(), c.N()) < LeastSamples}
	if was, is := first.Summary.Center, c.Summary.Center; is != was {
		change.Ratio = (is - was) / math.Abs(was)
	}
	if !comparable {
		change.Unjudged = NotLimited
	}
	return change
}

// Interval returns the 95 % interval of the new side ÷ the old side, by the rank test: the ratios
// that the test does not reject. It is of the typical pair of trials (within blocks), so the ratio of
// the medians may lie outside. It is infinite if there are too few trials.
func (c *Change) Interval() (lo, hi float64) {
	return 1 + c.Sight(-1, 0, Alpha/2).AtLeast, 1 - c.Sight(1, 0, Alpha/2).AtLeast
}

// Alpha is the significance level of pages and workbooks.
const Alpha = 0.05

// Judged returns 1 if the run has significantly more than the first run, -1 if it has less, and 0
// otherwise: the row is not judged, the difference may be chance, or the medians differ in the other
// direction than the trials within blocks. The gate and all documents use it. Only headline metrics are
// judged: of twenty metrics, one differs by chance.
func (c *Change) Judged(alpha float64) int {
	d := int(math.Copysign(1, c.Ratio))
	shown := c.Headline && c.Unjudged == "" && c.Adjusted < alpha &&
		c.Contrast.P(-d, 0) < c.Contrast.P(d, 0)
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

// Cell returns a run's values of a tidied unit, an empty cell if the benchmark does not have it.
func (b *Benchmark) Cell(unit string, run int) (c Cell) {
	if m := b.Metric(unit); m != nil {
		c = m.Cells[run]
	}
	return c
}

// headlines are the units by which a benchmark is judged: by the first that it has.
var headlines = []string{"read-B/s", "write-B/s", "sec/op"}

// Headlines returns the metrics by which a benchmark is judged, of those that its first run has. It is one,
// but of plain I/O that reads and writes together it is both rates.
func (b *Benchmark) Headlines() (list []*Metric) {
	both := strings.Contains(b.Name, "/op=mixed") || strings.Contains(b.Name, "/op=churn")
	for run := range b.Trials {
		for _, unit := range headlines {
			m := b.Metric(unit)
			if m != nil && m.Cells[run].N() > 0 && (len(list) == 0 || both && unit == "write-B/s") {
				list = append(list, m)
			}
		}
		if len(list) > 0 {
			break
		}
	}
	return list
}

// Headline is a metric by which a benchmark is judged: a row of the tables that compare runs.
type Headline struct {
	*Benchmark
	*Metric
}

// Row returns the name of the row: that of the benchmark, with the metric if the benchmark has two rows.
func (h Headline) Row() string {
	if len(h.Benchmark.Headlines()) > 1 {
		return h.Name + " " + strings.TrimSuffix(h.Unit, "-B/s")
	}
	return h.Name
}

// Headlines returns the rows of all benchmarks. A benchmark without a headline has its first metric.
func (t *Table) Headlines() (rows []Headline) {
	for _, b := range t.Benchmarks {
		metrics := b.Headlines()
		if len(metrics) == 0 {
			metrics = b.Metrics[:min(1, len(b.Metrics))]
		}
		for _, m := range metrics {
			rows = append(rows, Headline{b, m})
		}
	}
	return rows
}

// Build arranges the records for pages and workbooks. A simulation is a separate benchmark, "Synthetic
// (simulated)", so that it shares no row, median or bar with a measurement. Metrics have the order of
// the suite's units; other units follow.
func Build(records []*load.Record, units benchfmt.UnitMetadataMap, ignore ...string) *Table {
	t := arrange(records, units, append(slices.Clone(ignore), merge.SettingDevice, merge.SettingWindow), true)
	for _, b := range t.Benchmarks {
		slices.SortStableFunc(b.Metrics,
			func(x, y *Metric) int { return rank(x.Unit) - rank(y.Unit) })
	}
	for run := 1; run < len(t.Runs); run++ {
		var family []*Change
		for _, h := range t.Headlines() {
			if c := h.Cells[run].Change; c != nil {
				family = append(family, c)
			}
		}
		Correct(family)
	}
	return t
}

// Gather arranges the records for a gate. Simulated and measured trials share a name. Metrics have the
// order of the input.
func Gather(records []*load.Record, units benchfmt.UnitMetadataMap, ignore ...string) *Table {
	return arrange(records, units, ignore, false)
}

// arrange groups the trials and compares each run with the first. Trials of one name with different
// settings are separate benchmarks, whose names have the settings in which they differ:
// "StorageCeiling/op=read [chunk-size=16KiB]". ignore lists settings that may differ. mark gives
// simulations their own names.
func arrange(records []*load.Record, units benchfmt.UnitMetadataMap, ignore []string, mark bool,
) *Table {
	t := &Table{}
	runs := make([]int, len(records))
	for i, rec := range records {
		if runs[i] = slices.Index(t.Runs, rec.Source); runs[i] < 0 {
			runs[i], t.Runs = len(t.Runs), append(t.Runs, rec.Source)
		}
	}
	t.Labels = labels(t.Runs, records)
	// Thousands of lines share the benchmark's name and the configuration in force at the line, and so
	// the settings.
	type line struct {
		name   string
		run    int
		config *load.Setting
	}
	known := map[line]*Benchmark{}
	for i, name := range names(records, runs) {
		rec, run := records[i], runs[i]
		at := line{name, run, nil}
		if rec.IsLine() && len(rec.Config) > 0 {
			at.config = &rec.Config[0]
		}
		b := known[at]
		if b == nil || at.config == nil {
			b = t.benchmark(name, run, rec.Settings(), ignore, mark)
			known[at] = b
		}
		t.add(b, run, rec)
	}
	same := map[string][]*Benchmark{}
	for _, b := range t.Benchmarks {
		same[b.Plain] = append(same[b.Plain], b)
	}
	for _, b := range t.Benchmarks {
		if all := same[b.Plain]; all[0] == b {
			t.Notes = append(t.Notes, distinguish(all, ignore)...)
		}
		for run, trials := range b.Trials {
			b.Trials[run] = usable(trials)
		}
		for _, m := range b.Metrics {
			m.Better = units.GetBetter(m.Unit)
			m.summarize(units.GetAssumption(m.Unit), b.Comparable)
		}
	}
	return t
}

// benchmark returns the benchmark of a trial: the one with its name whose trials in all runs have its
// settings, or a new one.
func (t *Table) benchmark(name string, run int, s *load.Settings, ignore []string, mark bool) *Benchmark {
	simulated := mark && s.Simulated()
	name = marked(name, simulated)
	i := slices.IndexFunc(t.Benchmarks, func(b *Benchmark) bool {
		return b.Plain == name && !slices.ContainsFunc(b.Settings, func(have *load.Settings) bool {
			return len(load.Differences(have, s, ignore)) > 0
		})
	})
	if i < 0 {
		n := len(t.Runs)
		i, t.Benchmarks = len(t.Benchmarks), append(t.Benchmarks, &Benchmark{Plain: name, Name: name,
			Simulated: simulated, Trials: make([][]*load.Record, n), Settings: make([]*load.Settings, n),
			Count: make([]int, n), Failed: make([][]string, n)})
	}
	b := t.Benchmarks[i]
	if b.Settings[run] == nil {
		b.Settings[run] = &load.Settings{}
	}
	b.Settings[run].Add(s)
	return b
}

// add adds a trial to its benchmark.
func (t *Table) add(b *Benchmark, run int, rec *load.Record) {
	b.Count[run]++
	b.Trials[run] = append(b.Trials[run], rec)
	if failure := rec.Failure(); failure != "" {
		b.Failed[run] = append(b.Failed[run], failure)
	}
	for _, v := range rec.Values {
		m := b.metric(v.Unit, cmp.Or(v.OrigUnit, v.Unit))
		// A value that cannot be, infinite, missing, or a negative rate or time, is no part of a median: report it.
		if units.Finite(v.Value) != nil && (v.Value >= 0 || !positive.MatchString(m.Label)) {
			m.Cells[run].Add(v.Value, rec.Block())
			continue
		}
		note := fmt.Sprintf("%s %s: %s is %v and was left out", rec.Source, rec.Name, m.Label, v.Value)
		if !slices.Contains(t.Notes, note) {
			t.Notes = append(t.Notes, note)
		}
	}
}

// positive matches the units of rates and times.
var positive = regexp.MustCompile(`(/s|\bns\b.*)$`)

// metric returns the metric of a unit, and adds it if it is new. A benchmark has about a dozen metrics,
// so a list is fast enough and keeps their order.
func (b *Benchmark) metric(unit, label string) *Metric {
	m := b.Metric(unit)
	if m == nil {
		m = &Metric{Unit: unit, Label: label, Cells: make([]Cell, len(b.Trials))}
		b.Metrics = append(b.Metrics, m)
	}
	return m
}

// usable returns the trials whose values charts and medians use: the complete ones. If none is complete
// it returns all, because their time series may show why they failed.
func usable(trials []*load.Record) []*load.Record {
	complete := slices.DeleteFunc(slices.Clone(trials),
		func(rec *load.Record) bool { return len(rec.Values) == 0 })
	if len(complete) == 0 {
		return trials
	}
	return complete
}

// summarize computes the summaries and changes of all cells.
func (m *Metric) summarize(assume benchmath.Assumption, comparable func(run int) bool) {
	first := &m.Cells[0]
	for run := range m.Cells {
		c := &m.Cells[run]
		if len(c.Values) == 0 {
			continue
		}
		sample := benchmath.NewSample(slices.Clone(c.Values), &benchmath.DefaultThresholds) // it sorts
		c.Summary = assume.Summary(sample, Confidence)
		c.CV = units.Variation(c.Values)
		// Compare every other run with the first.
		if run > 0 && len(first.Values) > 0 {
			c.Change = newChange(*first, *c, comparable(run))
		}
	}
}
