package report

import (
	"fmt"
	"math"
	"slices"

	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
)

// spreadLimit is the largest (max - min) / median of trials that may be quoted. The value is a
// convention.
const spreadLimit = 0.2

// known returns the complete trials that have a unit of the benchmark line, and its values.
func known(trials []*result.Result, unit string) (having []*result.Result, values []float64) {
	for _, r := range trials {
		for _, m := range r.Metrics() {
			if m.Unit == unit && r.Status == result.StatusComplete {
				having, values = append(having, r), append(values, m.Value)
			}
		}
	}
	return having, values
}

// Typical is the trial that stands for several of one benchmark in all documents: of the complete
// ones the first whose headline is nearest to their median, since a mean of several shows stalls
// that none of them had. Without a headline it is the first complete one, or the first. It is nil of
// none.
func Typical(trials []*result.Result) *result.Result {
	for _, unit := range []string{"read-B/s", "write-B/s", "ns/op"} {
		having, values := known(trials, unit)
		if median, ok := units.Median(values); ok {
			nearest := 0
			for i, v := range values {
				if math.Abs(v-median) < math.Abs(values[nearest]-median) {
					nearest = i
				}
			}
			return having[nearest]
		}
	}
	for _, r := range trials {
		if r.Status == result.StatusComplete {
			return r
		}
	}
	for _, r := range trials {
		return r
	}
	return nil
}

// Trials sums up the trials of each benchmark that has several: the median of the storage's rates
// with the least and the largest, what limited the trials, and whether that is fit to quote.
// Without this line a reader might quote one trial. A rate that was not limited by the storage
// looks the same as one that was.
func Trials(results []*result.Result) (lines []string) {
	trials := map[string][]*result.Result{}
	var names []string
	for _, r := range results {
		if trials[r.Name] == nil {
			names = append(names, r.Name)
		}
		trials[r.Name] = append(trials[r.Name], r)
	}
	for _, name := range names {
		if len(trials[name]) > 1 {
			lines = append(lines, name+", "+trialsText(trials[name]))
		}
	}
	return lines
}

// trialsText is the line of one benchmark. Only a storage-limited rate is the storage's maximum.
// Any other rate is only what the run achieved.
func trialsText(trials []*result.Result) string {
	storageLimited, complete := 0, 0
	for _, r := range trials {
		if r.Status == result.StatusComplete {
			complete++
			if r.Harness.Verdict.Kind == result.StorageLimited {
				storageLimited++
			}
		}
	}
	text, advice := fmt.Sprintf("%d trials", len(trials)), "fit to quote"
	// The median is of the complete trials: with one of them it would look like two that agree.
	if complete < len(trials) {
		text = fmt.Sprintf("%d of %d trials complete", complete, len(trials))
	}
	for _, direction := range []struct{ did, unit string }{{"read", "read-B/s"},
		{"written", "write-B/s"}, {"freed", "freed-B/s"}} {
		_, values := known(trials, direction.unit)
		values = slices.DeleteFunc(values, func(v float64) bool { return v == 0 })
		median, ok := units.Median(values)
		if !ok { // a direction that the benchmark does not have
			continue
		}
		least, most := slices.Min(values), slices.Max(values)
		if most-least > spreadLimit*median {
			advice = "too far apart to quote: measure for longer (-benchtime) or more often " +
				"(-count)"
		}
		// One unit for all three, or 980 MiB/s looks larger than 1.02 GiB/s.
		show := units.BytesPerSec.InOneUnit(most)
		text += fmt.Sprintf(", %s %s (%s to %s)", direction.did, show(median), show(least),
			show(most))
	}
	if storageLimited < len(trials) {
		// A failed trial counts as one that the storage did not limit.
		advice = "do not quote as the storage's rate: see the other trials' verdicts or errors"
	}
	return fmt.Sprintf("%s; %d of %d storage-limited, %s", text, storageLimited, len(trials),
		advice)
}
