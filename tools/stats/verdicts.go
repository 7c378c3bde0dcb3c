package stats

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
)

// verdicts counts the verdicts of a run's trials. all is the number of trials with a verdict.
func (b *Benchmark) verdicts(run int) (counts map[string]int, all int) {
	counts = map[string]int{}
	for _, rec := range b.Trials[run] {
		if r := rec.Result; r != nil && r.Harness.Verdict.Kind != "" {
			counts[r.Harness.Verdict.Kind]++
			all++
		}
	}
	return counts, all
}

// Mostly returns the verdict of most of the run's trials that the storage did not limit, and their
// number. It returns the first in alphabetical order of several.
func (b *Benchmark) Mostly(run int) (kind string, n int) {
	counts, _ := b.verdicts(run)
	delete(counts, result.StorageLimited)
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		if counts[name] > n {
			kind, n = name, counts[name]
		}
	}
	return kind, n
}

// Limited reports whether at least half of the run's trials with a verdict were storage-limited. It
// returns true for benchmarks of memory tiers and for trials without verdicts.
func (b *Benchmark) Limited(run int) bool {
	counts, all := b.verdicts(run)
	return !OnStorage(b.Name) || 2*counts[result.StorageLimited] >= all
}

// LimitedCount returns how many of the run's trials with a verdict were storage-limited: "4 of 6".
func (b *Benchmark) LimitedCount(run int) string {
	counts, all := b.verdicts(run)
	return fmt.Sprintf("%d of %d", counts[result.StorageLimited], all)
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
	var parts []string
	counts, all := b.verdicts(run)
	for _, kind := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%d of %d %s", counts[kind], all, kind))
	}
	if n := len(b.Failed[run]); n > 0 {
		parts = append(parts, fmt.Sprintf("%d of %s failed", n, units.Plural(b.Count[run], "trial")))
	}
	return strings.Join(parts, ", ")
}
