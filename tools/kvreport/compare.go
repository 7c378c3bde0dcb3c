package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"kvbench/tools/gate"
	"kvbench/tools/load"
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

// runGate reads both sides, judges, and writes in the requested format. Exit code 1 is a failed
// gate, 3 an undecided one, and 2 says that nothing was compared. Wrong flags are reported before
// any input is opened, the first one only.
func runGate(c *Call) func([]string) error {
	var o gate.Options
	old, new := c.list("old"), c.list("new")
	c.gateOptions(&o)
	format := c.String("format", "text", "")
	ignore := c.String("ignore", "", "")
	c.BoolVar(&o.AllowBlind, "allow-blind", false, "")
	c.BoolVar(&o.AllowFailed, "allow-failed", false, "")
	c.IntVar(&o.Count, "count", 0, "")
	c.BoolVar(&o.AllowMissing, "allow-missing", false, "")
	c.BoolVar(&o.All, "all", false, "")
	return func(rest []string) error {
		ignored, wrong := overlooked(*ignore)
		o.Ignore = ignored
		form := gate.Formats[*format]
		switch {
		case len(rest) > 0:
			return fmt.Errorf("unexpected %q: inputs are given as -old IN -new IN, each repeatable",
				rest[0])
		case len(*old) == 0 || len(*new) == 0:
			return errors.New("-old and -new are both needed, for example: kvreport gate -old a.txt " +
				"-new b.txt")
		case slices.Contains(*old, load.Stdin) && slices.Contains(*new, load.Stdin):
			return errors.New("only one of -old and -new can be standard input")
		case form == nil:
			return fmt.Errorf("-format: must be one of %s, given %q", strings.Join(
				slices.Sorted(maps.Keys(gate.Formats)), ", "), *format)
		case o.Count < 0:
			return fmt.Errorf("-count: must be the number of trials of each side, given %d", o.Count)
		case checkAlpha(o) != nil:
			return checkAlpha(o)
		case wrong != nil:
			return wrong
		}
		// Bad lines are warnings on both sides; a side without any good line is an error.
		t, err := gate.Read(*old, *new, o.Ignore, c.stdin, c.warn)
		if err != nil {
			return err
		}
		r, err := gate.Judge(t, o)
		if err != nil {
			return err
		}
		// Nothing was compared: no table, and the exit code of wrong usage. Refusals go to standard
		// error: a report that a pipeline posts must not look like a comparison.
		if len(r.Refusals) > 0 {
			for _, line := range r.Refusals {
				c.say(line)
			}
			return errSaid
		}
		if _, err := io.WriteString(c.stdout, form(r)); err != nil {
			return err
		}
		switch r.Outcome() {
		case gate.Lost:
			return errNo
		case gate.Undecided:
			return errUndecided
		}
		return nil
	}
}
