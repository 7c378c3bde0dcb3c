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

// runTurns runs both sides in turns. Its exit code is 1 when runs failed, the others of which are
// kept, and 3 when so many runs could show nothing.
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
		// A line for each run: what the runs themselves say goes into files, of which a log of CI that
		// held all would be too long to read.
		t.Say = c.say
		// A signal ends the run in progress, in order: it has files to remove. What was
		// measured until then stays.
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		failed, err := t.Run(ctx)
		switch {
		// Not wrong usage: with as many runs another machine may well have an answer to fewer metrics.
		case errors.Is(err, gate.ErrFew):
			c.warn(err)
			return errUndecided
		case err != nil:
			return err
		// The gate judges the runs that failed, and has those that did not.
		case failed > 0:
			return errNo
		}
		return nil
	}
}

// gateOptions are the flags that say what is gated, and at which level: those that decide how many
// runs are needed, so that turns has them as well as gate.
func (c *Call) gateOptions(o *gate.Options) {
	o.Limits.Default = gate.DefaultLimit
	c.Var(&o.Limits, "max-regress", "")
	c.Float64Var(&o.Alpha, "alpha", 0.05, "")
	c.BoolVar(&o.AllowFew, "allow-few", false, "")
}

// checkAlpha refuses what is no probability of an error: percentages are the slip that people make.
func checkAlpha(o gate.Options) error {
	if !(o.Alpha > 0 && o.Alpha < 1) {
		return fmt.Errorf("-alpha: must be between 0 and 1, given %g", o.Alpha)
	}
	return nil
}
