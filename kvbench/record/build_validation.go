package record

import (
	"fmt"

	"kvbench/kvbench/result"
)

// validation compares the run with the recorded one.
func (b *builder) validation(r *result.Result) {
	if r.Validation == nil {
		return
	}
	v := *r.Validation
	v.Judge(r.Lookups.HitRate, r.Summary.CacheStats.ReadWriteRatio)
	r.Validation = &v
	if !v.Passed {
		r.Warnings = append(r.Warnings, fmt.Sprintf("the run is not within %.0f %% of the recorded one in %s", 100*v.Tolerance, v.Trace))
	}
}
