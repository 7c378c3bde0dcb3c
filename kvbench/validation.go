package kvbench

import (
	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
	"kvbench/workloads/formats"
)

// readValidation reads the recorded run before anything else is done.
func (t *trial) readValidation() error {
	if t.cfg.ValidationTrace == "" {
		return nil
	}
	v, err := formats.ReadValidation(t.cfg.ValidationTrace)
	t.info.Validation = &result.Validation{
		Trace: v.Path, Requests: v.Requests, Malformed: v.Malformed,
		HitRate:        result.Check{Recorded: units.Ratio(v.Hits, v.Lookups)},
		ReadWriteRatio: result.Check{Recorded: units.Ratio(v.ReadBytes, v.WriteBytes)},
	}
	return err
}
