package report

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
)

// spreadLimit is the largest (max - min) / median of trials that may be quoted. The value is a
// convention.
const spreadLimit = 0.2

// Typical is the trial that stands for several of one benchmark in all documents: of the complete
// ones the first whose headline is nearest to their median, since a mean of several shows stalls
// that none of them had. Without a complete one it is the first. It is nil of none.
func Typical(trials []*result.Result) *result.Result {
	complete := slices.DeleteFunc(slices.Clone(trials),
		func(r *result.Result) bool { return r.Status != result.StatusComplete })
	for _, unit := range []string{"read-B/s", "write-B/s", "ns/op"} {
		known := map[*result.Result]float64{}
		for _, r := range complete {
			for _, m := range r.Metrics() {
				if m.Unit == unit {
					known[r] = m.Value
				}
			}
		}
		if median, ok := units.Median(slices.Collect(maps.Values(known))); ok {
			distance := func(r *result.Result) float64 {
				if v, ok := known[r]; ok {
					return math.Abs(v - median)
				}
				return math.Inf(1)
			}
			return slices.MinFunc(complete, func(a, b *result.Result) int {
				return cmp.Compare(distance(a), distance(b))
			})
		}
	}
	for _, r := range append(complete, trials...) {
		return r
	}
	return nil
}

// Trials sums up the trials of each benchmark that has several: the median of the storage's rates
// with the least and the largest, what limited the trials, and whether that is fit to quote.
// Without this line a reader might quote one trial. A rate that was not limited by the storage
// looks the same as one that was.
func Trials(results []*result.Result) (lines []string) {
	seen := map[string]bool{}
	for _, r := range results {
		trials := slices.DeleteFunc(slices.Clone(results),
			func(x *result.Result) bool { return x.Name != r.Name })
		if len(trials) > 1 && !seen[r.Name] {
			lines = append(lines, r.Name+", "+trialsText(trials))
		}
		seen[r.Name] = true
	}
	return lines
}

// trialsText is the line of one benchmark. Only a storage-limited rate is the storage's maximum.
// Any other rate is only what the run achieved.
func trialsText(trials []*result.Result) string {
	rateUnits := []string{"read-B/s", "write-B/s", "freed-B/s"}
	var rates [3][]float64
	storageLimited, complete := 0, 0
	for _, r := range trials {
		if r.Status != result.StatusComplete {
			continue
		}
		complete++
		if r.Harness.Verdict.Kind == result.StorageLimited {
			storageLimited++
		}
		for _, m := range r.Metrics() { // those of the benchmark line
			if i := slices.Index(rateUnits, m.Unit); i >= 0 && m.Value > 0 {
				rates[i] = append(rates[i], m.Value)
			}
		}
	}
	text, advice := fmt.Sprintf("%d trials", len(trials)), "fit to quote"
	// The median is of the complete trials: with one of them it would look like two that agree.
	if complete < len(trials) {
		text = fmt.Sprintf("%d of %d trials complete", complete, len(trials))
	}
	// A direction that the benchmark does not have is left out.
	for i, values := range rates {
		median, ok := units.Median(values)
		if !ok {
			continue
		}
		least, most := slices.Min(values), slices.Max(values)
		if most-least > spreadLimit*median {
			advice = "too far apart to quote: measure for longer (-benchtime) or more often " +
				"(-count)"
		}
		// One unit for all three, or 980 MiB/s looks larger than 1.02 GiB/s.
		show := units.BytesPerSec.InOneUnit(most)
		did := [...]string{"read", "written", "freed"}[i]
		text += fmt.Sprintf(", %s %s (%s to %s)", did, show(median), show(least), show(most))
	}
	if storageLimited < len(trials) {
		// A failed trial counts as one that the storage did not limit.
		advice = "do not quote as the storage's rate: see the other trials' verdicts or errors"
	}
	return fmt.Sprintf("%s; %d of %d storage-limited, %s", text, storageLimited, len(trials),
		advice)
}
