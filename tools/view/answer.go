package view

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
	"kvbench/tools/stats"
)

// Answer says how a run differs from the first run, over the headline metrics of all benchmarks.
type Answer struct {
	Run  int // from 1
	Text string
}

// Index returns the index of the run in the report's list of runs.
func (a Answer) Index() int { return a.Run - 1 }

// The outcomes of the comparison of a headline metric. An answer says "better" or "worse" only for a
// significant difference. It names the benchmarks with too few trials, because readers take "no difference"
// for "equal".
const (
	notLimited = "not compared, because in at least one of the runs fewer than half of the trials were " +
		result.StorageLimited + ": %d"
	better    = "better in %d"
	worse     = "worse in %d"
	different = "different in %d"
	chance    = "no significant difference in %d"
	tooFew    = "too few trials for a comparison in %d"
	apart     = "not comparable in %d"
	absent    = "measured in only one of the two runs: %d"
)

// mostNamed is the number of benchmarks that an answer names per outcome. The table has all of them.
const mostNamed = 3

// answers returns one answer per run, except for the first run.
func answers(t *stats.Table, headlines []*stats.Benchmark) (out []Answer) {
	for run := 1; run < len(t.Runs); run++ {
		names := map[string][]string{}
		for _, b := range headlines {
			outcome, name := compared(b, run), b.Name
			if outcome != apart && outcome != absent {
				name += " " + Change(b, b.Headline(), run).Text
			}
			names[outcome] = append(names[outcome], name)
		}
		var parts []string
		for _, outcome := range []string{notLimited, better, worse, different, chance, tooFew, apart,
			absent} {
			list := names[outcome]
			if n := len(list); n > mostNamed {
				list = append(list[:mostNamed], fmt.Sprintf("and %d more", n-mostNamed))
			}
			if len(list) > 0 {
				parts = append(parts, fmt.Sprintf(outcome+" (%s)", len(names[outcome]),
					strings.Join(list, ", ")))
			}
		}
		out = append(out, Answer{run + 1, fmt.Sprintf("%s against %s: %s.", t.Labels[run],
			t.Labels[0], strings.Join(parts, "; "))})
	}
	return out
}

// compared compares the headline metric of a run with the first run's. It returns "" if neither run has
// values.
func compared(b *stats.Benchmark, run int) string {
	m := b.Headline()
	measured, first, c := m.Cells[run].N() > 0, m.Cells[0].N() > 0, m.Cells[run].Change
	switch {
	case !measured && !first:
		return ""
	case !measured || !first:
		return absent
	case c == nil:
		return apart
	case !Comparable(b, run):
		return notLimited
	case c.TooFew != "":
		return tooFew
	}
	switch c.Judged(stats.Alpha) {
	case 0:
		return chance
	case m.Better:
		return better
	case -m.Better:
		return worse
	}
	return different
}

// longest returns the largest value of any trial for each base unit, because all bars of a base unit have the
// same scale.
func longest(headlines []*stats.Benchmark) map[string]float64 {
	most := map[string]float64{}
	for _, b := range headlines {
		m := b.Headline()
		for _, c := range m.Cells {
			for _, v := range c.Values {
				most[BaseUnit(m.Unit)] = max(most[BaseUnit(m.Unit)], v)
			}
		}
	}
	return most
}

// BaseUnit returns the unit of a metric without the direction: B/s for read-B/s and for write-B/s.
func BaseUnit(unit string) string { return unit[strings.LastIndex(unit, "-")+1:] }

// verdicts counts the verdicts of a run's trials. all is the number of trials with a verdict.
func verdicts(b *stats.Benchmark, run int) (counts map[string]int, all int) {
	counts = map[string]int{}
	for _, rec := range b.Trials[run] {
		if r := rec.Result; r != nil && r.Harness.Verdict.Kind != "" {
			counts[r.Harness.Verdict.Kind]++
			all++
		}
	}
	return counts, all
}

// Comparable reports whether in both runs at least half of the trials with a verdict were
// storage-limited. It returns true for benchmarks of memory tiers and for trials without verdicts.
func Comparable(b *stats.Benchmark, run int) bool {
	for _, side := range []int{0, run} {
		counts, all := verdicts(b, side)
		if OnStorage(b.Name) && 2*counts[result.StorageLimited] < all {
			return false
		}
	}
	return true
}

// OnStorage reports whether a benchmark's rates are rates of the storage tier. The Tier benchmark has
// the tier in its name.
func OnStorage(name string) bool {
	return !strings.Contains(name, "/tier=") || strings.Contains(name, "/tier=storage")
}

// VerdictCounts lists the verdicts of a run's trials with their counts, and the number of failed trials. If
// the harness limited a rate, it is not the rate of the drive. The median over the complete trials does not
// show the failed trials.
func VerdictCounts(b *stats.Benchmark, run int) string {
	var parts []string
	counts, all := verdicts(b, run)
	for _, kind := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%d of %d %s", counts[kind], all, kind))
	}
	if n := len(b.Failed[run]); n > 0 {
		parts = append(parts, fmt.Sprintf("%d of %s failed", n, units.Plural(b.Count[run], "trial")))
	}
	return strings.Join(parts, ", ")
}
