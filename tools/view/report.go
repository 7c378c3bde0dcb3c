package view

import (
	"fmt"

	"kvbench/tools/load"
	"kvbench/tools/stats"
)

// Report is what a page shows, from the top.
type Report struct {
	Title       string
	Notices     []string
	Missing     []string // what could not be made, and why
	Runs        []Run
	Headlines   []Headline
	Compared    bool // several runs
	TierTable   *Grid
	TierFigures []Figure
	Sweeps      []Sweep
	Groups      []Group
}

// New makes the report of records; t is their comparison.
func New(records []*load.Record, t *stats.Table) *Report {
	r := &Report{Title: "kvbench report", Compared: len(t.Runs) > 1, Missing: Missing(records),
		Headlines: headlines(t), Sweeps: sweeps(t), Groups: groups(t)}
	r.TierTable, r.TierFigures = tierTable(t)
	r.runs(records, t)
	return r
}

// Missing says what the page cannot show for want of result files.
func Missing(records []*load.Record) (notes []string) {
	lost, python, first := 0, 0, error(nil)
	for _, r := range records {
		switch {
		case r.Python:
			python++
		case r.Result == nil:
			if lost++; first == nil {
				first = r.Missing
			}
		}
	}
	if lost > 0 {
		why := "their text names none"
		if first != nil {
			why = "the first: " + first.Error()
		}
		notes = append(notes, fmt.Sprintf("%d of %d results have no result file: no timelines, percentile curves, tier fill or "+
			"parameters of them (%s)", lost, len(records), why))
	}
	if python > 0 {
		notes = append(notes, fmt.Sprintf("%d of %d results are of the Python benchmark, which records no timelines and no histograms",
			python, len(records)))
	}
	return notes
}
