package main

import (
	"kvbench/tools/sizing"
)

// runDatasize answers a question about a run that does not exist yet, so that its arguments are the
// run's.
func runDatasize(c *Call) func([]string) error {
	q := sizing.NewQuestion(c.FlagSet)
	asJSON := c.Bool("json", false, "")
	return func(rest []string) error {
		// Answered before anything is printed: needs that are wrong are worse than none.
		answer, err := q.Answer(rest)
		if err != nil {
			return c.mistakes(err)
		}
		err = c.print(answer, *asJSON)
		// A no is an answer, and written in full.
		if err == nil && !answer.Fits() {
			err = errNo
		}
		return err
	}
}
