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

	"kvbench/kvbench/merge"
	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
	"kvbench/tools/load"
)

// Table is everything measured, in the order in which it was read.
type Table struct {
	Runs       []string // sources
	Labels     []string // what to call them: the file's name if it is unique
	Benchmarks []*Benchmark
	Units      benchfmt.UnitMetadataMap
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
	Warnings []error // too few samples to tell, say
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
		change.Warnings = append(change.Warnings, fmt.Errorf(
			"need >= %d samples to detect a difference at alpha level %g",
			LeastSamples, Alpha))
	}
	return change
}

// Alpha is the level below which a difference counts as significant.
const Alpha = 0.05

// Judged is 1 where the run has more than the first one, -1 where it has less, and 0 where that is
// not shown: the difference may be chance after correction, or the medians differ the other way
// than the trials within their turns. The gate and all documents call a run better by it. Other
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
	c := Collection{KeepTrials: true, MarkSimulated: true, Ignore: ignore}
	for _, rec := range records {
		c.Add(rec.Source, rec)
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

// Collection gathers records; their names are resolved once all are known. The zero value is ready
// to use.
type Collection struct {
	KeepTrials    bool     // the table names the records
	MarkSimulated bool     // predictions are benchmarks of their own
	Ignore        []string // settings in which trials of a benchmark may differ

	runs  []string
	parts map[partKey][]*part // by their settings
	order []*part
	notes []string
}

// part is one run's trials of a benchmark as it was printed: with its package and GOMAXPROCS.
type part struct {
	partKey
	Benchmark // of this run alone
}

// partKey identifies a part. The run is an index into runs.
type partKey struct {
	run              int
	pkg, base, procs string
	simulated        bool
}

// Add adds a trial of a run to the others with the same settings.
func (c *Collection) Add(run string, rec *load.Record) {
	key := partKey{run: slices.Index(c.runs, run),
		pkg: rec.Package(), simulated: c.MarkSimulated && rec.IsSimulated()}
	key.base, key.procs = load.SplitProcs(rec.Name)
	if key.run < 0 {
		key.run = len(c.runs)
		c.runs = append(c.runs, run)
	}
	var p *part
	for _, have := range c.parts[key] {
		if have.Settings[0].Fits(rec, c.Ignore) {
			p = have
			break
		}
	}
	if p == nil {
		p = &part{key, newBenchmark(1)}
		p.Settings[0] = load.NewSettings()
		if c.parts == nil {
			c.parts = map[partKey][]*part{}
		}
		c.parts[key] = append(c.parts[key], p)
		c.order = append(c.order, p)
	}
	// A gate over many results needs numbers and settings, and not the files.
	if c.KeepTrials {
		p.Trials[0] = append(p.Trials[0], rec)
	}
	p.Count[0]++
	if len(rec.Values) == 0 {
		why := cmp.Or(rec.Missing, "no values on its line")
		if rec.Result != nil {
			why = merge.Fate(rec.Result)
		}
		p.Failed[0] = append(p.Failed[0], why)
	}
	for _, v := range rec.Values {
		m := p.metric(v.Unit, cmp.Or(v.OrigUnit, v.Unit))
		// An infinite or missing value cannot be part of a median, and is reported.
		if !math.IsNaN(v.Value) && !math.IsInf(v.Value, 0) {
			m.Cells[0].Add(v.Value, rec.Turn())
			continue
		}
		note := fmt.Sprintf("%s %s: %s is %v and was left out", run, rec.Name, m.Label, v.Value)
		if !slices.Contains(c.notes, note) {
			c.notes = append(c.notes, note)
		}
	}
	p.Settings[0].Add(rec)
}

// Failures lists how a run's trials without numbers ended, each way once.
func (c *Collection) Failures(run string) (list []string) {
	at := slices.Index(c.runs, run)
	for _, p := range c.order {
		for _, why := range p.Failed[0] {
			if text := p.base + ": " + why; p.run == at && !slices.Contains(list, text) {
				list = append(list, text)
			}
		}
	}
	return list
}

// newBenchmark has no metric yet.
func newBenchmark(runs int) Benchmark {
	return Benchmark{Trials: make([][]*load.Record, runs), Settings: make([]*load.Settings, runs),
		Count: make([]int, runs), Failed: make([][]string, runs)}
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

// Table arranges what was gathered and compares each run with the first. Parts of one name that
// were measured with different settings are benchmarks of their own, whose names say in what they
// differ: "StorageCeiling/op=read [chunk-size=16KiB]".
func (c *Collection) Table(units benchfmt.UnitMetadataMap) *Table {
	t := &Table{Runs: c.runs, Labels: labels(c.runs), Units: units, Notes: c.notes}
	byName := map[string][]*Benchmark{}
	for i, name := range c.names() {
		p, all := c.order[i], newBenchmark(len(t.Runs))
		b := &all
		for _, have := range byName[name] {
			if !slices.ContainsFunc(have.Settings, func(s *load.Settings) bool {
				return len(load.Differences(s, p.Settings[0], c.Ignore)) > 0
			}) {
				b = have
				break
			}
		}
		if b == &all {
			b.Plain, b.Simulated = name, p.simulated
			byName[name] = append(byName[name], b)
			t.Benchmarks = append(t.Benchmarks, b)
		}
		b.add(p)
	}
	differ := map[string][]string{}
	for _, b := range t.Benchmarks {
		if all := byName[b.Plain]; len(all) > 1 && all[0] == b {
			differ[b.Plain] = differences(all, c.Ignore)
			t.Notes = append(t.Notes, apart(b.Plain, len(all), differ[b.Plain]))
		}
		if all := byName[b.Plain]; all[0] == b {
			name(all, differ[b.Plain])
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

// usable are the trials whose numbers are in charts and medians. A failed trial is used only if
// there is no other: its time series may show why it failed.
func usable(trials []*load.Record) []*load.Record {
	complete := slices.DeleteFunc(slices.Clone(trials), func(rec *load.Record) bool {
		return len(rec.Values) == 0 || rec.Result != nil &&
			rec.Result.Status == result.StatusIncomplete
	})
	if len(complete) == 0 {
		return trials
	}
	return complete
}

// differences are the settings in which benchmarks of a name differ.
func differences(all []*Benchmark, ignore []string) []string {
	names := map[string]bool{}
	for i, x := range all {
		for _, y := range all[:i] {
			for _, d := range load.Differences(x.settings(), y.settings(), ignore) {
				names[d.Name] = true
			}
		}
	}
	return merge.InOrder(names)
}

// apart says why a benchmark has several rows, and how to get one.
func apart(name string, rows int, differ []string) string {
	some := slices.Clone(differ)
	if more := len(differ) - leastNamed; more > 0 {
		some = append(some[:leastNamed], fmt.Sprintf("and %d more", more))
	}
	note := fmt.Sprintf("%s stands in %d rows: its trials differ in %s", name, rows,
		strings.Join(some, ", "))
	if may := slices.DeleteFunc(slices.Clone(differ), merge.Defines); len(may) == len(differ) {
		note += "; -ignore " + strings.Join(may, ",") + " makes them one"
	}
	return note
}

// leastNamed is how many differing settings are named: another division has dozens of other
// defaults.
const leastNamed = 3

// name adds to the names of equal benchmarks the settings in which they differ: the first, or as
// many as make the names unique.
func name(all []*Benchmark, differ []string) {
	names := map[string]bool{}
	for n := min(leastNamed, len(differ)); n <= len(differ) && len(names) < len(all); n++ {
		clear(names)
		for _, b := range all {
			var parts []string
			for _, name := range differ[:n] {
				if v := b.settings().Text(name); v != "" {
					parts = append(parts, name+"="+v)
				}
			}
			b.Name = b.Plain + merge.Bracketed(parts)
			names[b.Name] = true
		}
	}
}

// settings are the settings of all runs, which do not differ.
func (b *Benchmark) settings() *load.Settings {
	all := load.NewSettings()
	for _, s := range b.Settings {
		if s != nil {
			all.Merge(s)
		}
	}
	return all
}

// add adds one run's part of a benchmark. Two parts of a run can be one benchmark: a line with
// GOMAXPROCS in its name, and a result file without.
func (b *Benchmark) add(p *part) {
	b.Trials[p.run] = append(b.Trials[p.run], p.Trials[0]...)
	if b.Settings[p.run] == nil {
		b.Settings[p.run] = p.Settings[0]
	} else {
		b.Settings[p.run].Merge(p.Settings[0])
	}
	b.Count[p.run] += p.Count[0]
	b.Failed[p.run] = append(b.Failed[p.run], p.Failed[0]...)
	for _, have := range p.Metrics {
		c := &b.metric(have.Unit, have.Label).Cells[p.run]
		c.Values = append(c.Values, have.Cells[0].Values...)
		c.Turns = append(c.Turns, have.Cells[0].Turns...)
	}
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
	var all Together
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
			all.Add(c.P, 2*c.Least())
		}
	}
	adjusted, _ := all.Correct(Alpha)
	for i, p := range adjusted {
		family[i].Adjusted = p
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

// names returns the parts' names in the table. GOMAXPROCS (-8) and the package are left out, so
// that machines and moved packages can be compared, unless one run has several of them: several
// suffixes within a run are a sweep of -cpu.
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

// marked inserts the mark after the benchmark's own name: "Synthetic (simulated)/num-users=8".
func marked(name string, simulated bool) string {
	if !simulated {
		return name
	}
	i := strings.IndexByte(name+"/", '/')
	return name[:i] + " (simulated)" + name[i:]
}
