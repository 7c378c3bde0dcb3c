package view

import (
	"cmp"
	"fmt"
	"slices"

	"kvbench/tools/load"
	"kvbench/tools/stats"
)

// Report is the content of a page, from the top. The template shows the fields in this order and leaves
// out empty ones.
type Report struct {
	Notices     []string
	Missing     []string // the sections that could not be made, and why
	Common      []Fact   // equal for all runs; Runs has the other facts
	Runs        []Run
	Answers     []Answer
	Headlines   []*stats.Benchmark // benchmarks that have a headline metric
	Longest     map[string]float64 // by unit, as longest returns it
	Tiers       []TierAlone
	TierFigures []Chart
	Sweeps      []Sweep
	Groups      []Group
}

// New makes the report of the records. t is their comparison.
func New(records []*load.Record, t *stats.Table) *Report {
	tiers := tiersAlone(t)
	headlines := slices.DeleteFunc(slices.Clone(t.Benchmarks),
		func(b *stats.Benchmark) bool { return b.Headline() == nil })
	all := runs(records, t)
	return &Report{Notices: notices(records, t), Missing: slices.Concat(Missing(records), t.Notes),
		Common: common(all), Runs: all, Answers: answers(t, headlines), Headlines: headlines,
		Longest: longest(headlines), Tiers: tiers, TierFigures: tierFigure(t, tiers),
		Sweeps: Sweeps(t), Groups: groups(t)}
}

// Charts returns the figures, with the name of their benchmark or sweep in the title: the first figure
// of each, then the second of each. So the first few figures show different benchmarks.
func (r *Report) Charts() (out []Chart) {
	type named struct {
		name   string
		charts []Chart
	}
	list := []named{{"", r.TierFigures}}
	for _, s := range r.Sweeps {
		list = append(list, named{s.Title + ": ", s.Figures})
	}
	for _, g := range r.Groups {
		for _, m := range g.Members {
			list = append(list, named{m.Of.Name + ": ", m.Figures})
		}
	}
	for i, more := 0, true; more; i++ {
		more = false
		for _, x := range list {
			if i < len(x.charts) {
				c := x.charts[i]
				c.Title = x.name + c.Title
				out, more = append(out, c), true
			}
		}
	}
	return out
}

// Missing says which parts of the page are missing because result files are missing.
func Missing(records []*load.Record) (notes []string) {
	lost, python, first := 0, 0, ""
	for _, r := range records {
		if r.Python {
			python++
		} else if r.Result == nil {
			lost++
			first = cmp.Or(first, r.Missing)
		}
	}
	// The most common reason for an empty page: the text was copied without the results directory.
	if lost > 0 {
		why := "their text names none"
		if first != "" {
			why = "the first: " + first
		}
		notes = append(notes, fmt.Sprintf("%d of %d results have no readable result file: no "+
			"timelines, percentile curves, tier fill or parameters of them (%s)", lost,
			len(records), why))
	}
	notes = append(notes, Lacking(records)...)
	if python > 0 {
		notes = append(notes, fmt.Sprintf("%d of %d results are of the Python benchmark, which "+
			"records no timelines and no histograms", python, len(records)))
	}
	return notes
}

// Page is a document of one subject that compares no results. The caller makes all of its content.
type Page struct {
	Title   string
	Facts   []Fact // at the top
	Figures []Chart
	Parts   []Part
	Notes   []string // at the end: limits of the numbers
}

// Charts are the figures that have numbers.
func (p Page) Charts() []Chart { return shown(false, slices.Clone(p.Figures)...) }

// Lacking reports the trials that lack a rank among the inputs and therefore have no numbers. The user
// may have named the results of one client only.
func Lacking(records []*load.Record) []string {
	n, first := 0, ""
	for _, rec := range records {
		switch {
		case rec.Ranks == nil:
		case rec.Result == nil && rec.Missing != "": // of the Python benchmark
			n++
			first = cmp.Or(first, rec.Name+": "+rec.Missing)
		case rec.Result != nil && len(rec.Ranks) < rec.Result.Ranks:
			n++
			first = cmp.Or(first, fmt.Sprintf("%s, trial %d: %s", rec.Name, rec.Result.Trial,
				rec.Result.Error))
		}
	}
	if n == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%d of %d trials lack a rank and have no numbers (the first: %s); "+
		"name the directory that holds the results of all ranks as one input", n, len(records),
		first)}
}
