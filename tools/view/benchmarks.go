package view

import (
	"cmp"
	"slices"
	"strings"

	"kvbench/kvbench/report"
	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
	"kvbench/tools/load"
	"kvbench/tools/stats"
)

// Group has all sub-benchmarks of one benchmark. The page folds the members if there are more than two: a
// sweep with forty values would fill a hundred screens.
type Group struct {
	Name    string
	Members []Member
}

// Member is one benchmark with the sections and the figures of its results.
type Member struct {
	Benchmark *stats.Benchmark
	Parts     []Part
	Figures   []Chart
	Details   []Part // sections that the page folds
}

// groups makes a section for each benchmark with its sub-benchmarks.
func groups(t *stats.Table) (out []Group) {
	for _, b := range t.Benchmarks {
		name := base(b.Name)
		i := slices.IndexFunc(out, func(g Group) bool { return g.Name == name })
		if i < 0 {
			i = len(out)
			out = append(out, Group{Name: name})
		}
		out[i].Members = append(out[i].Members, newMember(b, t))
	}
	return out
}

func newMember(b *stats.Benchmark, t *stats.Table) Member {
	var subjects []subject
	var sections [][]report.Section
	for run := range t.Runs {
		s := subject{run, b.Trials[run], MedianTrial(b, run)}
		subjects, sections = append(subjects, s), append(sections, Sections(s.median))
	}
	m := Member{Benchmark: b, Figures: draw(b, subjects, t)}
	for _, j := range report.Join(sections) {
		p := Part{Section: j.Section, Long: len(j.Rows) > mostRows}
		if len(t.Runs) > 1 {
			p.name(j, t.Labels)
		}
		if p.Folded {
			m.Details = append(m.Details, p)
		} else {
			m.Parts = append(m.Parts, p)
		}
	}
	return m
}

// Sections are the sections of a result for page and workbook: those of the summary, and the percentiles
// of the kernel's histograms.
func Sections(rec *load.Record) (list []report.Section) {
	if rec == nil {
		return nil
	}
	if rec.Result != nil {
		list = report.Sections(rec.Result)
	}
	// One table per unit, because a column with both microseconds and requests cannot be sorted. Sizes stay
	// in KiB, because the workbook would show bytes in GiB.
	for _, kind := range []struct {
		title, unit string
		shown       units.Unit
		scale       float64
	}{{"Kernel Times", "µs", units.Nanoseconds, 1e3}, {"Kernel Sizes (KiB)", "KiB", units.Number, 1},
		{"Kernel Places", "GiB", units.Bytes, 1 << 30},
		{"Kernel Depths", "requests", units.Number, 1}} {
		s := report.Section{Title: kind.title, Folded: true, Columns: []report.Column{
			{Name: "histogram"}, {Name: "what it is"}, {Name: "samples", Unit: units.Count},
			{Name: "p50", Unit: kind.shown}, {Name: "p95", Unit: kind.shown},
			{Name: "p99", Unit: kind.shown}, {Name: "below", Unit: kind.shown}}}
		for _, h := range rec.Tracing() {
			if h.Units == kind.unit {
				s.Rows = append(s.Rows, []any{h.Title, h.What, h.Count, *h.P50 * kind.scale,
					*h.P95 * kind.scale, *h.P99 * kind.scale,
					h.Buckets[len(h.Buckets)-1].Range[1] * kind.scale})
			}
		}
		if len(s.Rows) > 0 {
			list = append(list, s)
		}
	}
	return list
}

// Part is a section for the median trials of all runs. With several runs, the first column of the table
// is the run, RunOf has the run's number of each row, and lines begin with the run's name.
type Part struct {
	report.Section
	RunOf []int // from 1
	Long  bool  // the page folds the table
}

// mostRows is the largest number of rows of a table that the page does not fold.
const mostRows = 12

// name adds the run's name to each row and to the first line of each run.
func (p *Part) name(j report.Joined, labels []string) {
	for i, run := range j.LineOf {
		if i == 0 || run != j.LineOf[i-1] {
			p.Lines[i].Topic = strings.TrimSpace(labels[run] + " " + p.Lines[i].Topic)
		}
	}
	if len(p.Rows) > 0 {
		p.Columns = append([]report.Column{{Name: "run"}}, p.Columns...)
	}
	for i, run := range j.RowOf {
		p.Rows[i], p.RunOf = append([]any{labels[run]}, p.Rows[i]...), append(p.RunOf, run+1)
	}
}

// MedianTrial returns the trial that represents a run (report.Typical), nil if no trial has a result
// file.
func MedianTrial(b *stats.Benchmark, run int) *load.Record {
	list := results(b.Trials[run])
	if len(list) == 0 {
		return nil
	}
	typical := report.Typical(list)
	return b.Trials[run][slices.IndexFunc(b.Trials[run],
		func(rec *load.Record) bool { return rec.Result == typical })]
}

// results returns the results of the records that have one.
func results(records []*load.Record) (list []*result.Result) {
	for _, rec := range records {
		if rec.Result != nil {
			list = append(list, rec.Result)
		}
	}
	return list
}

// Levels are the keys of the tiers in a result, from fast to slow. The result schema fixes them.
var Levels = []string{"gpu", "cpu", "storage"}

// ops are the two operations.
var ops = []string{"read", "write"}

// keyValues returns the key=value parts of a benchmark's name in order.
func keyValues(name string) (keys []string, values map[string]string) {
	values = map[string]string{}
	plain, _ := split(name)
	for _, part := range strings.Split(plain, "/")[1:] {
		if k, v, ok := strings.Cut(part, "="); ok {
			keys = append(keys, k)
			values[k] = v
		}
	}
	return keys, values
}

// Anchor returns the benchmark's anchor in the page's URL. Other documents link to it, so it has no keys
// of a sweep.
func Anchor(name string) string { return anchors.Replace(base(name)) }

var anchors = strings.NewReplacer("/", "-", "=", "-", " ", "-", `"`, "-", "(", "-", ")", "-")

// Keys returns the key=value parts of a benchmark's name and its settings, or the name if it has no
// keys.
func Keys(name string) string {
	plain, settings := split(name)
	_, keys, _ := strings.Cut(plain, "/")
	return cmp.Or(keys, plain) + settings
}

// base returns the benchmark's name without keys and settings.
func base(name string) string {
	plain, _ := split(name)
	b, _, _ := strings.Cut(plain, "/")
	return b
}

// split separates a name from its settings in brackets, whose values may be paths with slashes.
func split(name string) (plain, settings string) {
	if i := strings.Index(name, " ["); i >= 0 {
		return name[:i], name[i:]
	}
	return name, ""
}
