package stats

import (
	"cmp"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/perf/benchfmt"
	"golang.org/x/perf/benchmath"

	"kvbench/tools/load"
)

// Table is everything measured, in the order in which it was read.
type Table struct {
	Runs       []string // sources
	Labels     []string // what to call them: the file's name where that tells them apart
	Benchmarks []*Benchmark
	Units      benchfmt.UnitMetadataMap
	Notes      []string // what was left out, and why
}

// Benchmark is one benchmark with its metrics.
type Benchmark struct {
	Name     string
	Metrics  []*Metric
	Trials   [][]*load.Record // by run
	Settings []*load.Settings // by run; nil where the run has no trial of it

	Simulated bool // predictions, and marked as such in the name
}

// Metric is one unit of one benchmark.
type Metric struct {
	Unit   string // tidied: sec instead of ns
	Label  string // as written
	Better int    // +1 higher, -1 lower, 0 unknown
	Cells  []Cell // by run
}

// Cell is what one run measured.
type Cell struct {
	Values  []float64 // in the order of the trials
	Summary benchmath.Summary
	CV      float64 // standard deviation ÷ mean, not a number below two samples
	Change  *Change // against the first run; nil for that and where one has no sample
}

// N is the number of trials.
func (c Cell) N() int { return len(c.Values) }

// Change compares a run with the first one.
type Change struct {
	Ratio float64 // by which the new median is larger, as a share of the old one
	P     float64 // of the Mann-Whitney test, for this cell alone

	// Adjusted is P after Holm's correction over all headline metrics of the pair of runs; P for
	// other metrics, which are no part of that family.
	Adjusted float64
	Headline bool
	Warnings []error // too few samples to tell, say

	// Incomparable says why the two runs measured different things; then there is no change to
	// speak of and the other fields are not set.
	Incomparable string
}

// Alpha is the level below which a difference counts as significant.
const Alpha = 0.05

// Significant says whether the difference is more than chance: after correction for headline
// metrics, taken alone for the others.
func (c *Change) Significant() bool {
	return c.Incomparable == "" && c.Adjusted < Alpha
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

// Cell is what a run measured of a tidied unit: nothing where there is no such benchmark or metric.
func (b *Benchmark) Cell(unit string, run int) (c Cell) {
	if b == nil {
		return c
	}
	if m := b.Metric(unit); m != nil {
		c = m.Cells[run]
	}
	return c
}

// Headlines are the metrics by which a benchmark is judged when nobody names another, the first
// that it has.
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

// Build arranges the records for people. What ran in virtual time is a benchmark of its own,
// "Synthetic (simulated)": a prediction shares no row, no median and no chart's bar with a
// measurement. Metrics stand in the order in which the suite lists its units, others behind them.
func Build(records []*load.Record, units benchfmt.UnitMetadataMap) *Table {
	c := Collection{KeepTrials: true, MarkSimulated: true}
	for _, rec := range records {
		c.Add(rec.Source, load.TrialOf(rec))
	}
	t := c.Table(units)
	for _, b := range t.Benchmarks {
		slices.SortStableFunc(b.Metrics,
			func(x, y *Metric) int { return rank(x.Unit) - rank(y.Unit) })
	}
	for run := 1; run < len(t.Runs); run++ {
		t.correct(run)
	}
	return t
}

// Collection gathers records, whose names are understood once all are known. The zero value is
// ready to use.
type Collection struct {
	KeepTrials    bool // the table names the records
	MarkSimulated bool // predictions are benchmarks of their own

	runs  []string
	parts map[partKey]*part
	order []*part
	notes []string
}

// part is what one run has of a benchmark as it was printed: with its package and GOMAXPROCS.
type part struct {
	partKey
	Benchmark // of this run alone
}

// partKey tells parts apart. The run is an index into runs.
type partKey struct {
	run              int
	pkg, base, procs string
	simulated        bool
}

// Add takes in a trial of a run. Its ranks were measured alike, so that the first says where it
// belongs.
func (c *Collection) Add(run string, t load.Trial) {
	first := t.Ranks[0]
	key := partKey{run: slices.Index(c.runs, run),
		simulated: c.MarkSimulated && first.IsSimulated()}
	key.base, key.procs = load.SplitProcs(t.Name)
	if key.run < 0 {
		key.run = len(c.runs)
		c.runs = append(c.runs, run)
	}
	// The package is named by the line's configuration.
	for _, line := range first.Config {
		if line.Key == "pkg" {
			key.pkg = line.Value
		}
	}
	p := c.parts[key]
	if p == nil {
		p = &part{key, newBenchmark(1)}
		p.Settings[0] = load.NewSettings()
		if c.parts == nil {
			c.parts = map[partKey]*part{}
		}
		c.parts[key] = p
		c.order = append(c.order, p)
	}
	// A gate over years of results needs numbers and settings, and not the files.
	if c.KeepTrials {
		p.Trials[0] = append(p.Trials[0], t.Ranks...)
	}
	for _, v := range t.Values {
		m := p.metric(v.Unit, cmp.Or(v.OrigUnit, v.Unit))
		// An infinite or missing value has no place in a median, and must not vanish without a
		// word.
		if !math.IsNaN(v.Value) && !math.IsInf(v.Value, 0) {
			m.Cells[0].Values = append(m.Cells[0].Values, v.Value)
			continue
		}
		note := fmt.Sprintf("%s %s: %s is %v and was left out", run, t.Name, m.Label, v.Value)
		if !slices.Contains(c.notes, note) {
			c.notes = append(c.notes, note)
		}
	}
	for _, rank := range t.Ranks {
		p.Settings[0].Add(rank)
	}
}

// newBenchmark has no metric yet.
func newBenchmark(runs int) Benchmark {
	return Benchmark{Trials: make([][]*load.Record, runs), Settings: make([]*load.Settings, runs)}
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

// Table arranges what was gathered and compares each run with the first.
func (c *Collection) Table(units benchfmt.UnitMetadataMap) *Table {
	t := &Table{Runs: c.runs, Labels: labels(c.runs), Units: units, Notes: c.notes}
	byName := map[string]*Benchmark{}
	for i, name := range c.names() {
		b := byName[name]
		if b == nil {
			b = new(newBenchmark(len(t.Runs)))
			b.Name, b.Simulated = name, c.order[i].simulated
			byName[name] = b
			t.Benchmarks = append(t.Benchmarks, b)
		}
		b.add(c.order[i])
	}
	for _, b := range t.Benchmarks {
		differ := make([]string, len(t.Runs))
		for run := range differ {
			differ[run] = load.Incomparable(b.Settings[0], b.Settings[run])
		}
		for _, m := range b.Metrics {
			m.Better = units.GetBetter(m.Unit)
			m.summarize(units.GetAssumption(m.Unit), differ)
		}
	}
	return t
}

// add takes in one run's part of a benchmark. Two parts of a run can be one benchmark: a line with
// GOMAXPROCS in its name, and a result file without.
func (b *Benchmark) add(p *part) {
	b.Trials[p.run] = append(b.Trials[p.run], p.Trials[0]...)
	if b.Settings[p.run] == nil {
		b.Settings[p.run] = p.Settings[0]
	} else {
		b.Settings[p.run].Merge(p.Settings[0])
	}
	for _, have := range p.Metrics {
		c := &b.metric(have.Unit, have.Label).Cells[p.run]
		c.Values = append(c.Values, have.Cells[0].Values...)
	}
}

// summarize fills the cells. A run that measured something else has no change: the reason stands
// in its place.
func (m *Metric) summarize(assume benchmath.Assumption, differ []string) {
	first := &m.Cells[0]
	for run := range m.Cells {
		c := &m.Cells[run]
		if len(c.Values) == 0 {
			continue
		}
		c.Summary = assume.Summary(sample(c.Values), Confidence)
		c.CV = Variation(c.Values)
		switch {
		// The first run is what others are compared with.
		case run == 0 || len(first.Values) == 0:
		case differ[run] != "":
			c.Change = &Change{Incomparable: differ[run]}
		default:
			cmp := assume.Compare(sample(first.Values), sample(c.Values))
			old, new := first.Summary.Center, c.Summary.Center
			c.Change = &Change{Ratio: (new - old) / math.Abs(old), P: cmp.P, Adjusted: cmp.P,
				Warnings: cmp.Warnings}
		}
	}
}

// correct applies Holm's correction to the headline metrics of one run against the first.
func (t *Table) correct(run int) {
	var family []*Change
	var p []float64
	for _, b := range t.Benchmarks {
		m := b.Headline()
		if m == nil || m.Cells[run].Change == nil || m.Cells[run].Change.Incomparable != "" {
			continue
		}
		family = append(family, m.Cells[run].Change)
		p = append(p, m.Cells[run].Change.P)
	}
	for i, adjusted := range Holm(p) {
		family[i].Headline, family[i].Adjusted = true, adjusted
	}
}

// labels shortens paths to their last element unless two runs would have the same name.
func labels(runs []string) (out []string) {
	for _, run := range runs {
		if label := filepath.Base(run); !slices.Contains(out, label) {
			out = append(out, label)
		}
	}
	if len(out) < len(runs) {
		return runs
	}
	return out
}

// names returns what the parts are called in the table. GOMAXPROCS (-8) and the package are left
// out, so that machines can be compared, and a package that moved, unless one run has a benchmark
// with several of them: within a run several suffixes are a sweep of -cpu.
func (c *Collection) names() (list []string) {
	several := func(of func(*part) string) map[string]bool {
		first, found := map[partKey]string{}, map[string]bool{}
		for _, p := range c.order {
			at := partKey{run: p.run, base: p.base}
			first[at] = cmp.Or(first[at], of(p))
			found[p.base] = found[p.base] || of(p) != "" && of(p) != first[at]
		}
		return found
	}
	procs := several(func(p *part) string { return p.procs })
	pkgs := several(func(p *part) string { return p.pkg })
	for _, p := range c.order {
		name := p.base
		if procs[p.base] {
			name += p.procs
		}
		if pkgs[p.base] && p.pkg != "" {
			name = p.pkg + "." + name
		}
		list = append(list, marked(name, p.simulated))
	}
	return list
}

// NameOf is the name under which one record stands: its own, marked when it is simulated.
func NameOf(rec *load.Record) string { return marked(rec.Name, rec.IsSimulated()) }

// marked puts the mark behind the benchmark's own name: "Synthetic (simulated)/num-users=8".
func marked(name string, simulated bool) string {
	if !simulated {
		return name
	}
	i := strings.IndexByte(name+"/", '/')
	return name[:i] + " (simulated)" + name[i:]
}
