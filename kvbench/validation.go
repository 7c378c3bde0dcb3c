package kvbench

import (
	"kvbench/workloads"
)

// readValidation reads the recorded run before anything else is done.
func (t *trial) readValidation() error {
	if t.cfg.ValidationTrace == "" {
		return nil
	}
	v, err := workloads.ReadValidation(t.cfg.ValidationTrace)
	t.info.Validation = &ValidationReport{
		Trace: v.Path, Requests: v.Requests, Malformed: v.Malformed,
		HitRate:        ValidationCheck{Recorded: ratio(float64(v.Hits), float64(v.Lookups))},
		ReadWriteRatio: ValidationCheck{Recorded: ratio(float64(v.ReadBytes), float64(v.WriteBytes))},
	}
	return err
}
