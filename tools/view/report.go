package view

import (
	"cmp"
	"fmt"
	"slices"

	"kvbench/kvbench/report"
	"kvbench/tools/load"
	"kvbench/tools/stats"
)

// Report is the content of a page, from the top. The template shows the fields in this order and leaves
// out empty ones.
type Report struct {
	Notices []string
	Missing []string // the sections that cannot be shown, and why
	Common  []Fact   // equal for all runs; Runs has the other facts
	Runs    []Run
	Quote   Quote
	Scales  []Scale // headlines
	Sweeps  []Sweep
	Groups  []Group
	Engines Part // results of other programs
}

// New makes the report of the records. t is their comparison; engines are results of other programs.
func New(records []*load.Record, t *stats.Table, engines []load.Engine) *Report {
	all := runs(records, t)
	return &Report{Notices: notices(records), Missing: slices.Concat(Missing(records), t.Notes),
		Common: common(all), Runs: all, Quote: NewQuote(records, t), Scales: scales(t.Headlines()),
		Sweeps: Sweeps(t), Groups: groups(t), Engines: Part{Section: Engines(engines, t)}}
}

// Charts returns the figures, with the name of their benchmark or sweep in the title: the first figure of
// each benchmark and sweep, then the second figures, and so on. So the first few figures show different
// benchmarks.
func (r *Report) Charts() (out []Chart) {
	var lists [][]Chart
	add := func(name string, charts []Chart) {
		charts = slices.Clone(charts)
		for i := range charts {
			charts[i].Title = name + ": " + charts[i].Title
		}
		lists = append(lists, charts)
	}
	for _, s := range r.Sweeps {
		add(s.Title, s.Figures)
	}
	for _, g := range r.Groups {
		for _, m := range g.Members {
			add(m.Benchmark.Name, m.Figures)
		}
	}
	for len(lists) > 0 {
		lists = slices.DeleteFunc(lists, func(c []Chart) bool { return len(c) == 0 })
		for i, charts := range lists {
			out, lists[i] = append(out, charts[0]), charts[1:]
		}
	}
	return out
}

// Missing says which parts of the page are missing because result files are missing. The most common reason
// is that the user has copied the text without the results directory.
func Missing(records []*load.Record) (notes []string) {
	lost, lack, python := 0, 0, 0
	reason, trial := "", ""
	for _, r := range records {
		if r.Python {
			python++
		} else if r.Result == nil {
			lost++
			reason = cmp.Or(reason, r.Missing)
		}
		if text := lacking(r); text != "" {
			lack++
			trial = cmp.Or(trial, text)
		}
	}
	add := func(n int, format string, args ...any) {
		if n > 0 {
			notes = append(notes, fmt.Sprintf("%d of %d ", n, len(records))+
				fmt.Sprintf(format, args...))
		}
	}
	if reason = "the first: " + reason; reason == "the first: " {
		reason = "their text names none"
	}
	add(lost, "results have no readable result file: the page lacks their timelines, percentile curves, "+
		"tier fill and parameters (%s)", reason)
	add(lack, "trials lack a rank and have no numbers (the first: %s); name the directory that "+
		"holds the results of all ranks as one input", trial)
	add(python, "results are of the Python benchmark, which records no timelines and no histograms")
	return notes
}

// lacking returns which rank of a trial is missing among the inputs, or "". The user may have named the
// results of only one client.
func lacking(rec *load.Record) string {
	switch {
	case rec.Ranks == nil:
	case rec.Result == nil && rec.Missing != "": // of the Python benchmark
		return rec.Name + ": " + rec.Missing
	case rec.Result != nil && len(rec.Ranks) < rec.Result.Ranks:
		return fmt.Sprintf("%s, trial %d: %s", rec.Name, rec.Result.Trial, rec.Result.Error)
	}
	return ""
}

// Page is a document of one subject that compares no results. The caller makes all of its content.
type Page struct {
	Title   string
	Facts   []report.Line // at the top
	Figures []Chart
	Parts   []Part
	Notes   []string // at the end: limits of the numbers
}

// Charts are the figures that have numbers.
func (p Page) Charts() []Chart { return shown(false, p.Figures...) }
