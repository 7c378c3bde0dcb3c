package main

import (
	"errors"
	"strings"

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
	if err != nil {
		// Every mistake in the parameters has a line of its own.
		for mistake := range strings.SplitSeq(err.Error(), "\n") {
			c.warn(errors.New(mistake))
		}
		return errSaid
	}
	err = c.print(answer, *asJSON)
	// A no is an answer, and written in full.
	if err == nil && !answer.Fits() {
		err = errNo
	}
	return err
}
