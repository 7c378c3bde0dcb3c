package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"kvbench/tools/gate"
)

// runTurns runs both sides in turns. Its exit code is 1 when runs failed (the others are kept), and
// 3 when the runs are too few to show anything.
func runTurns(c *Call) func([]string) error {
	// A command is one text for the shell rather than a list of words: a benchmark's pattern has
	// characters that two lists of words on one line could not separate.
	var t gate.Turns
	c.StringVar(&t.Commands[0], "old", "", "")
	c.StringVar(&t.Commands[1], "new", "", "")
	c.IntVar(&t.Count, "count", 8, "")
	c.StringVar(&t.Dir, "out", "", "")
	c.gateOptions(&t.Options)
	return func(rest []string) error {
		switch {
		case len(rest) > 0:
			return fmt.Errorf("unexpected %q: a command with spaces stands in quotes", rest[0])
		case t.Commands[0] == "" || t.Commands[1] == "" || t.Dir == "":
			return errors.New("-old, -new and -out are all needed: two commands, and a directory for " +
				"what they print")
		case t.Count < 1:
			return fmt.Errorf("-count: must be the number of runs of each side, given %d", t.Count)
		}
		if err := checkAlpha(t.Options); err != nil {
			return err
		}
		// A line for each run: the output of the runs goes into files, because it would be too long
		// for a CI log.
		t.Say = c.say
		// A signal interrupts the current run, which removes its files. Earlier measurements stay.
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		failed, err := t.Run(ctx)
		switch {
		// Not wrong usage: the same number of runs may be enough for fewer metrics.
		case errors.Is(err, gate.ErrFew):
			c.warn(err)
			return errUndecided
		case err != nil:
			return err
		// The gate judges the failed runs.
		case failed > 0:
			return errNo
		}
		return nil
	}
}

// gateOptions are the flags for the gated metrics and the level. They determine the number of runs,
// so turns has them as well as gate.
func (c *Call) gateOptions(o *gate.Options) {
	o.Limits.Default = gate.DefaultLimit
	c.Var(&o.Limits, "max-regress", "")
	c.Float64Var(&o.Alpha, "alpha", 0.05, "")
	c.BoolVar(&o.AllowFew, "allow-few", false, "")
}

// checkAlpha refuses values that are no probability: percentages are the common mistake.
func checkAlpha(o gate.Options) error {
	if !(o.Alpha > 0 && o.Alpha < 1) {
		return fmt.Errorf("-alpha: must be between 0 and 1, given %g", o.Alpha)
	}
	return nil
}
