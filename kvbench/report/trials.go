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
	var names []string
	byName := map[string][]*result.Result{}
	for _, r := range results {
		if byName[r.Name] == nil {
			names = append(names, r.Name)
		}
		byName[r.Name] = append(byName[r.Name], r)
	}
	for _, name := range names {
		if trials := byName[name]; len(trials) > 1 {
			lines = append(lines, name+", "+trialsText(trials))
		}
	}
	return lines
}

// trialsText is the line of one benchmark. Of the reasons not to quote it, the first that applies
// stands for all: each of them is enough.
func trialsText(trials []*result.Result) string {
	var rates [2][]float64
	complete, limited := 0, 0
	for _, r := range trials {
		if r.Status != result.StatusComplete {
			continue
		}
		complete++
		if r.Harness.Verdict.Kind == result.StorageLimited {
			limited++
		}
		read, write := r.StorageTraffic()
		for i, v := range []*float64{read.BytesPerSecond, write.BytesPerSecond} {
			if v != nil && *v > 0 {
				rates[i] = append(rates[i], *v)
			}
		}
	}
	// One unit for the three numbers of a direction, or 980 MiB/s looks larger than 1.02 GiB/s.
	text, spread := fmt.Sprintf("%d trials", len(trials)), 0.0
	for i, values := range rates {
		median, some := units.Median(values)
		if !some {
			continue
		}
		least, most := slices.Min(values), slices.Max(values)
		spread = max(spread, (most-least)/median)
		show := units.BytesPerSec.Beside(most)
		text += fmt.Sprintf(", %s %s (%s to %s)", [...]string{"read", "written"}[i], show(median),
			show(least), show(most))
	}
	// What can be quoted is what the storage can do: a rate that something else limited says only
	// what the storage did.
	advice := ""
	switch {
	case complete < len(trials):
		advice = fmt.Sprintf("%d failed: not fit to quote", len(trials)-complete)
	case limited < complete:
		advice = "not fit to quote for the storage: change what the other verdicts name"
	case spread > spreadLimit:
		advice = "too far apart to quote: measure for longer (-benchtime) or more often (-count)"
	default:
		advice = "fit to quote"
	}
	return fmt.Sprintf("%s; %d of %d storage-limited, %s", text, limited, len(trials), advice)
}
