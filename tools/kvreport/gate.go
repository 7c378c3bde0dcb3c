package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"kvbench/tools/gate"
	"kvbench/tools/load"
)

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
