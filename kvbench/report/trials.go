package report

import (
	"math"

	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
)

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
