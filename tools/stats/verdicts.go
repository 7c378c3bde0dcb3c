package stats

import (
	"fmt"
	"strings"

	"kvbench/kvbench/report"
	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
)

// Results returns the results of a run's trials that have a verdict.
func (b *Benchmark) Results(run int) (results []*result.Result) {
	for _, rec := range b.Trials[run] {
		if r := rec.Result; r != nil && r.Harness.Verdict.Kind != "" {
			results = append(results, r)
		}
	}
	return results
}

// Valid counts the trials of a run in which the storage was the limit (report.Limited). all is the
// number of trials with a verdict. All trials of a memory tier are valid.
func (b *Benchmark) Valid(run int) (valid, all int) {
	results := b.Results(run)
	for _, r := range results {
		if report.Limited(r) == "" || !OnStorage(b.Name) {
			valid++
		}
	}
	return valid, len(results)
}

// NotLimited is why a row is not compared: in one of the runs fewer than half of the trials were
// limited by the storage. A rate that another limit decided says nothing about the storage.
const NotLimited = "mostly not " + result.StorageLimited

// Limited reports whether the storage was the limit of at least half of the run's trials with a verdict.
// It returns true for trials without verdicts.
func (b *Benchmark) Limited(run int) bool {
	valid, all := b.Valid(run)
	return 2*valid >= all
}

// Comparable reports whether the run may be compared with the first run.
func (b *Benchmark) Comparable(run int) bool { return b.Limited(0) && b.Limited(run) }

// OnStorage reports whether a benchmark's rates are rates of the storage tier. The Tier benchmark has
// the tier in its name.
func OnStorage(name string) bool {
	return !strings.Contains(name, "/tier=") || strings.Contains(name, "/tier=storage")
}

// VerdictCounts lists the verdicts of a run's trials with their counts, and the number of failed trials. If
// the harness limited a rate, it is not the rate of the drive. The median over the complete trials does not
// show the failed trials.
func (b *Benchmark) VerdictCounts(run int) string {
	text := report.Verdicts(b.Results(run))
	if n := len(b.Failed[run]); n > 0 {
		text += fmt.Sprintf(", %d of %s failed", n, units.Plural(b.Count[run], "trial"))
	}
	return strings.TrimPrefix(text, ", ")
}
