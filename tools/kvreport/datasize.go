package main

import (
	"kvbench/tools/sizing"
)

// runDatasize computes the needs of a future run, so its arguments are that run's.
func runDatasize(c *Call) func([]string) error {
	q := sizing.NewQuestion(c.FlagSet)
	asJSON := c.Bool("json", false, "")
	return func(rest []string) error {
		// Everything is computed before anything is printed: partial needs would be misleading.
		answer, err := q.Answer(rest)
		if err != nil {
			return c.mistakes(err)
		}
		err = c.print(answer, *asJSON)
		// A result that does not fit is printed in full.
		if err == nil && !answer.Fits() {
			err = errNo
		}
		return err
	}
}
