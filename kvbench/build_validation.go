package kvbench

import (
	"fmt"
	"math"
)

// validationTolerance is how far, relatively, a run may be from the recorded one.
const validationTolerance = 0.05

func newCheck(recorded, measured *float64) ValidationCheck {
	c := ValidationCheck{Recorded: recorded, Measured: measured}
	if recorded == nil || measured == nil {
		return c
	}
	d := *measured - *recorded
	if *recorded != 0 {
		d /= *recorded
	}
	c.Difference, c.Passed = &d, new(math.Abs(d) <= validationTolerance)
	return c
}

func (b *builder) validation(r *Result) {
	v := b.info.Validation
	if v == nil {
		return
	}
	rep := &ValidationReport{
		Trace: v.Path, Requests: v.Requests, Malformed: v.Malformed, Tolerance: validationTolerance,
		HitRate:        newCheck(ratio(float64(v.Hits), float64(v.Lookups)), r.Lookups.HitRate),
		ReadWriteRatio: newCheck(ratio(float64(v.ReadBytes), float64(v.WriteBytes)), r.Summary.CacheStats.ReadWriteRatio),
	}
	judged := 0
	rep.Passed = true
	for _, c := range rep.Checks() {
		if c.Passed != nil {
			judged++
			rep.Passed = rep.Passed && *c.Passed
		}
	}
	rep.Passed = rep.Passed && judged > 0
	r.Validation = rep
	if !rep.Passed {
		r.Warnings = append(r.Warnings, fmt.Sprintf("the run is not within %.0f %% of the recorded one in %s", 100*validationTolerance, v.Path))
	}
}
