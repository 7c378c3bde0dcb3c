// Package compare arranges records as benchmarks × metrics × runs and says what is known of each cell: median, confidence
// interval, spread, and whether runs differ by more than chance.
package compare

import (
	"math"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/perf/benchfmt"
	"golang.org/x/perf/benchmath"

	"kvbench/tools/comparable"
	"kvbench/tools/input"
)

// Confidence of every interval.
const Confidence = 0.95

// Table is everything measured, in the order in which it was read.
type Table struct {
	Runs       []string // sources
	Labels     []string // what to call them: the file's name where that tells them apart
	Benchmarks []*Benchmark
	Units      benchfmt.UnitMetadataMap

	byName map[string]*Benchmark
}

// Benchmark is one benchmark with its metrics.
type Benchmark struct {
	Name    string
	Metrics []*Metric
	Trials  [][]*input.Record // by run

	Simulated bool // predictions, and marked as such in the name

	byUnit map[string]*Metric
}

// Metric is one unit of one benchmark.
type Metric struct {
	Unit   string // tidied: sec instead of ns
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

// Change compares a run with the first one.
type Change struct {
	Ratio float64 // new median ÷ old median - 1
	P     float64 // of the Mann-Whitney test, for this cell alone

	// Adjusted is P after Holm's correction over all headline metrics of the pair of runs; 0 for other metrics, which are
	// no part of that family.
	Adjusted float64
	Headline bool
	Warnings []error // too few samples to tell, say

	// Incomparable says why the two runs measured different things; then there is no change to speak of and the other
	// fields are not set.
	Incomparable string
}

// Alpha is the level below which a difference counts as significant.
const Alpha = 0.05

// Significant says whether the difference is more than chance: after correction for headline metrics, taken alone for the
// others.
func (c *Change) Significant() bool {
	if c.Incomparable != "" {
		return false
	}
	if c.Headline {
		return c.Adjusted < Alpha
	}
	return c.P < Alpha
}

// Build arranges the records. A benchmark's -GOMAXPROCS suffix is dropped, so that machines can be compared, unless one
// run has the benchmark with several of them. What ran in virtual time is a benchmark of its own, "Synthetic (simulated)":
// a prediction shares no row, no median and no chart's bar with a measurement.
func Build(records []*input.Record, units benchfmt.UnitMetadataMap) *Table {
	t := &Table{Units: units, byName: map[string]*Benchmark{}}
	runs := map[string]int{}
	for _, rec := range records {
		if _, ok := runs[rec.Source]; !ok {
			runs[rec.Source] = len(t.Runs)
			t.Runs = append(t.Runs, rec.Source)
		}
	}
	t.Labels = labels(t.Runs)
	keep := severalProcs(records)
	var settings comparable.Reader
	for _, rec := range records {
		name, _ := splitProcs(rec.Name)
		if keep[name] {
			name = rec.Name
		}
		simulated := settings.IsSimulated(rec)
		if simulated {
			name = markSimulated(name)
		}
		b := t.byName[name]
		if b == nil {
			b = &Benchmark{Name: name, Simulated: simulated, Trials: make([][]*input.Record, len(t.Runs)), byUnit: map[string]*Metric{}}
			t.byName[name] = b
			t.Benchmarks = append(t.Benchmarks, b)
		}
		b.add(rec, runs[rec.Source], len(t.Runs), units)
	}
	var defaults comparable.Defaults
	for _, b := range t.Benchmarks {
		b.order()
		differ := make([]string, len(t.Runs))
		for run := range differ {
			differ[run] = comparable.Differ(&defaults, b.Name, b.Trials[0], b.Trials[run])
		}
		for _, m := range b.Metrics {
			m.summarize(units.GetAssumption(m.Unit), differ)
		}
	}
	for run := 1; run < len(t.Runs); run++ {
		t.correct(run)
	}
	return t
}

func (b *Benchmark) add(rec *input.Record, run, runs int, units benchfmt.UnitMetadataMap) {
	b.Trials[run] = append(b.Trials[run], rec)
	for _, v := range rec.Values {
		m := b.byUnit[v.Unit]
		if m == nil {
			m = &Metric{Unit: v.Unit, Better: units.GetBetter(v.Unit), Cells: make([]Cell, runs)}
			b.byUnit[v.Unit] = m
			b.Metrics = append(b.Metrics, m)
		}
		if !math.IsNaN(v.Value) {
			m.Cells[run].Values = append(m.Cells[run].Values, v.Value)
		}
	}
}

// order sorts the metrics as the suite lists its units; others stay behind in the order in which they came.
func (b *Benchmark) order() {
	slices.SortStableFunc(b.Metrics, func(x, y *Metric) int { return rank(x.Unit) - rank(y.Unit) })
}

// Metric returns the metric of a tidied unit, or nil.
func (b *Benchmark) Metric(unit string) *Metric { return b.byUnit[unit] }

// Headline is the one metric by which a benchmark is judged when nobody names another: read-B/s, else write-B/s, else
// the time per operation, else the first. It is nil when there is none.
func (b *Benchmark) Headline() *Metric {
	for _, u := range []string{"read-B/s", "write-B/s", "sec/op"} {
		if m := b.byUnit[u]; m != nil {
			return m
		}
	}
	if len(b.Metrics) > 0 {
		return b.Metrics[0]
	}
	return nil
}

func (m *Metric) summarize(assume benchmath.Assumption, differ []string) {
	var first *benchmath.Sample
	for run := range m.Cells {
		c := &m.Cells[run]
		if len(c.Values) == 0 {
			continue
		}
		sample := benchmath.NewSample(slices.Clone(c.Values), &benchmath.DefaultThresholds)
		c.Summary = assume.Summary(sample, Confidence)
		c.CV = variation(c.Values)
		if run == 0 {
			first = sample
		} else if first != nil && differ[run] != "" {
			c.Change = &Change{Incomparable: differ[run]}
		} else if first != nil {
			cmp := assume.Compare(first, sample)
			c.Change = &Change{Ratio: c.Summary.Center/m.Cells[0].Summary.Center - 1, P: cmp.P, Warnings: cmp.Warnings}
		}
	}
}

// variation is the coefficient of variation.
func variation(values []float64) float64 {
	n := float64(len(values))
	if n < 2 {
		return math.NaN()
	}
	mean := 0.0
	for _, v := range values {
		mean += v / n
	}
	sum := 0.0
	for _, v := range values {
		sum += (v - mean) * (v - mean)
	}
	return math.Sqrt(sum/(n-1)) / math.Abs(mean)
}

// correct applies Holm's correction to the headline metrics of one run against the first.
func (t *Table) correct(run int) {
	var family []*Change
	for _, b := range t.Benchmarks {
		if m := b.Headline(); m != nil && m.Cells[run].Change != nil && m.Cells[run].Change.Incomparable == "" {
			c := m.Cells[run].Change
			c.Headline = true
			family = append(family, c)
		}
	}
	slices.SortStableFunc(family, func(a, b *Change) int {
		switch {
		case a.P < b.P:
			return -1
		case a.P > b.P:
			return 1
		}
		return 0
	})
	running := 0.0
	for i, c := range family {
		running = max(running, min(1, c.P*float64(len(family)-i)))
		c.Adjusted = running
	}
}

// labels shortens paths to their last element unless two runs would have the same name.
func labels(runs []string) []string {
	out, taken := make([]string, len(runs)), map[string]bool{}
	for i, run := range runs {
		out[i] = filepath.Base(run)
		if taken[out[i]] {
			return runs
		}
		taken[out[i]] = true
	}
	return out
}

// NameOf is the name under which one record stands: its own, marked when it is simulated.
func NameOf(rec *input.Record) string {
	var settings comparable.Reader
	if settings.IsSimulated(rec) {
		return markSimulated(rec.Name)
	}
	return rec.Name
}

// markSimulated puts the mark behind the benchmark's own name: "Synthetic (simulated)/num-users=8".
func markSimulated(name string) string {
	base, keys, ok := strings.Cut(name, "/")
	if ok {
		keys = "/" + keys
	}
	return base + simulatedMark + keys
}

const simulatedMark = " (simulated)"

// splitProcs cuts the -GOMAXPROCS suffix of a benchmark's name.
func splitProcs(name string) (base, procs string) {
	i := strings.LastIndexByte(name, '-')
	if i < 0 || i == len(name)-1 || strings.Trim(name[i+1:], "0123456789") != "" {
		return name, ""
	}
	return name[:i], name[i:]
}

// severalProcs finds the benchmarks that one run has with several suffixes.
func severalProcs(records []*input.Record) map[string]bool {
	type key struct{ source, name string }
	seen, several := map[key]string{}, map[string]bool{}
	for _, rec := range records {
		base, procs := splitProcs(rec.Name)
		if procs == "" {
			continue
		}
		k := key{rec.Source, base}
		if have, ok := seen[k]; ok && have != procs {
			several[base] = true
		}
		seen[k] = procs
	}
	return several
}
