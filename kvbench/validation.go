package kvbench

import (
	"fmt"
	"math"

	"kvbench/workloads"
)

// validationTolerance is how far, relatively, a run may be from the recorded one.
const validationTolerance = 0.05

// ValidationReport compares a run with a recorded one.
type ValidationReport struct {
	Trace          string          `json:"trace"`
	Requests       int64           `json:"requests"` // of the trace
	Malformed      int64           `json:"malformed"`
	Tolerance      float64         `json:"tolerance"`
	HitRate        ValidationCheck `json:"hit_rate"`
	ReadWriteRatio ValidationCheck `json:"read_write_ratio"`
	Passed         bool            `json:"passed"`
}

// ValidationCheck is one number of both runs. Null: one of them does not have it, and then it is not judged.
type ValidationCheck struct {
	Recorded   *float64 `json:"recorded"`
	Measured   *float64 `json:"measured"`
	Difference *float64 `json:"difference"` // relative to the recorded one; absolute where that is 0
	Passed     *bool    `json:"passed"`
}

// NamedCheck is one line of a validation report.
type NamedCheck struct {
	Name string
	ValidationCheck
}

// Checks lists the numbers that a validation compares.
func (v *ValidationReport) Checks() []NamedCheck {
	return []NamedCheck{{"hit rate", v.HitRate}, {"read/write ratio", v.ReadWriteRatio}}
}

// Word is the judgement: pass, fail, or not judged where one of the two runs does not have the number.
func (c ValidationCheck) Word() string {
	switch {
	case c.Passed == nil:
		return "not judged"
	case *c.Passed:
		return "pass"
	}
	return "fail"
}

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

// readValidation reads the recorded run before anything else is done.
func (t *trial) readValidation() error {
	if t.cfg.ValidationTrace == "" {
		return nil
	}
	v, err := workloads.ReadValidation(t.cfg.ValidationTrace)
	t.info.Validation = &v
	return err
}
