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

// answers returns one answer per run, except for the first run. It calls only significant differences of
// headline metrics better or worse. It also names the benchmarks with too few trials, because readers
// take "no difference" for "equal".
func answers(t *stats.Table, headlines []*stats.Benchmark) (out []Answer) {
	for run := 1; run < len(t.Runs); run++ {
		var better, worse, other, chance, few, notStorageLimited, apart, absent []string
		for _, b := range headlines {
			m := b.Headline()
			c := m.Cells[run].Change
			name := b.Name
			switch here, there := m.Cells[run].N() > 0, m.Cells[0].N() > 0; {
			case !here && !there:
				continue
			case !here || !there:
				absent = append(absent, name)
				continue
			case c == nil:
				apart = append(apart, name)
				continue
			}
			to := &chance
			switch d := c.Judged(stats.Alpha); {
			case !Comparable(b, run):
				to = &notStorageLimited
			case c.TooFew != "":
				to = &few
			case d == 0:
			case d == m.Better:
				to = &better
			case d == -m.Better:
				to = &worse
			default:
				to = &other
			}
			*to = append(*to, fmt.Sprintf("%s %s", name, Change(b, m, run).Text))
		}
		var parts []string
		comparable := len(better) + len(worse) + len(other) + len(chance) + len(few)
		say := func(list []string, most int, format string) {
			if n := len(list); n > 0 {
				names := strings.Join(list[:min(n, most)], ", ")
				if n > most {
					names += fmt.Sprintf(", and %d more", n-most)
				}
				parts = append(parts, fmt.Sprintf(format, n)+" ("+names+")")
			}
		}
		say(notStorageLimited, mostNamed, fmt.Sprintf("%d of %d rows are compared; %%d not, "+
			"because in one run or both fewer than half of the trials were %s", comparable,
			comparable+len(notStorageLimited), result.StorageLimited))
		say(better, mostNamed, "better in %d")
		say(worse, mostNamed, "worse in %d")
		say(other, mostNamed, "different in %d")
		say(chance, mostNamed, "not more than chance in %d")
		say(few, mostNamed, fmt.Sprintf("too few trials to tell in %%d, where %d of each run "+
			"would do", stats.LeastSamples))
		say(apart, mostNamed, "not comparable in %d")
		say(absent, mostNamed, "measured in one of the two alone: %d")
		out = append(out, Answer{run + 1, fmt.Sprintf("%s against %s: %s.", t.Labels[run],
			t.Labels[0], strings.Join(parts, "; "))})
	}
	return out
}

// mostNamed is the number of benchmarks that an answer names per verdict. The table has all of them.
const mostNamed = 3

// longest returns, for each unit, the largest value of any trial: all bars of a unit have one scale.
func longest(headlines []*stats.Benchmark) map[string]float64 {
	most := map[string]float64{}
	for _, b := range headlines {
		m := b.Headline()
		for _, c := range m.Cells {
			for _, v := range c.Values {
				most[Scale(m.Unit)] = max(most[Scale(m.Unit)], v)
			}
		}
	}
	return most
}

// Scale returns the unit of a metric without the direction: B/s for read-B/s and for write-B/s.
func Scale(unit string) string { return unit[strings.LastIndex(unit, "-")+1:] }

// verdicts counts the verdicts of a run's trials.
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
	for _, of := range []int{0, run} {
		counts, all := verdicts(b, of)
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

// Bounded lists the verdicts of a run's trials with their counts, and the number of failed trials. A
// rate that the harness limited is not the drive's rate, and the median over the complete trials hides
// the failed trials.
func Bounded(b *stats.Benchmark, run int) string {
	var said []string
	counts, all := verdicts(b, run)
	for _, kind := range slices.Sorted(maps.Keys(counts)) {
		said = append(said, fmt.Sprintf("%d of %d %s", counts[kind], all, kind))
	}
	if n := len(b.Failed[run]); n > 0 {
		said = append(said, fmt.Sprintf("%d of %s failed", n, units.Plural(b.Count[run], "trial")))
	}
	return strings.Join(said, ", ")
}
