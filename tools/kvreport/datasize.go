package main

import (
	"errors"

	"kvbench/tools/sizing"
)

// runDatasize answers a question about a run that does not exist yet, so that its arguments are the
// run's. They stand behind the defaults, so that they win.
func runDatasize(c *Call) error {
	q := sizing.NewQuestion(c.FlagSet)
	asJSON := c.Bool("json", false, "")
	c.args = append(sizing.Defaults(), c.args...)
	rest, err := c.parse()
	if err != nil {
		return err
	}
	// Answered before anything is printed: needs that are wrong are worse than none.
	answer, err := q.Answer(rest)
	var several interface{ Unwrap() []error }
	if errors.As(err, &several) { // every mistake in the parameters has a line of its own
		for _, err := range several.Unwrap() {
			c.warn(err)
		}
		return errSaid
	}
	if err == nil {
		err = c.print(answer, *asJSON)
	}
	// A no is an answer, and written in full.
	if err == nil && !answer.Fits() {
		err = errNo
	}
	return err
}
