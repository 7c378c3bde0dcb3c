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
	t.info.Validation = &v
	return err
}
