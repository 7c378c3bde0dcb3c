package report

import (
	"fmt"
	"slices"

	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
)

// spreadLimit is how far the slowest and the fastest trial may be apart, relative to the median,
// before their numbers should not be quoted: a convention.
const spreadLimit = 0.2

// Trials sums up the trials of each benchmark that has several: the median of the storage's rates
// with the least and the largest, what limited the trials, and whether that is fit to quote. A
// reader of several summaries would otherwise pick a number: rates of trials that something else
// than the storage has limited look like any other.
func Trials(results []*result.Result) (lines []string) {
	known := map[string]bool{}
	for _, r := range results {
		trials := slices.DeleteFunc(slices.Clone(results),
			func(x *result.Result) bool { return x.Name != r.Name })
		if len(trials) > 1 && !known[r.Name] {
			lines = append(lines, r.Name+", "+trialsText(trials))
		}
		known[r.Name] = true
	}
	return lines
}

// trialsText is the line of one benchmark. What can be quoted is what the storage can do: a rate
// that something else limited says only what the storage did.
func trialsText(trials []*result.Result) string {
	rateUnits := []string{"read-B/s", "write-B/s"}
	var rates [2][]float64
	limited := 0
	for _, r := range trials {
		if r.Status != result.StatusComplete {
			continue
		}
		if r.Harness.Verdict.Kind == result.StorageLimited {
			limited++
		}
		for _, m := range r.Metrics() { // those of the benchmark line
			if i := slices.Index(rateUnits, m.Unit); i >= 0 && m.Value > 0 {
				rates[i] = append(rates[i], m.Value)
			}
		}
	}
	text, advice := fmt.Sprintf("%d trials", len(trials)), "fit to quote"
	// A direction that the benchmark does not have is left out.
	for i, values := range rates {
		median, some := units.Median(values)
		if !some {
			continue
		}
		least, most := slices.Min(values), slices.Max(values)
		if most-least > spreadLimit*median {
			advice = "too far apart to quote: measure for longer (-benchtime) or more often " +
				"(-count)"
		}
		// One unit for all three, or 980 MiB/s looks larger than 1.02 GiB/s.
		show := units.BytesPerSec.Beside(most)
		text += fmt.Sprintf(", %s %s (%s to %s)", [...]string{"read", "written"}[i], show(median),
			show(least), show(most))
	}
	if limited < len(trials) {
		advice = "not fit to quote for the storage: see what limited the others, or why they failed"
	}
	return fmt.Sprintf("%s; %d of %d storage-limited, %s", text, limited, len(trials), advice)
}
