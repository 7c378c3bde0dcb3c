package main

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"kvbench/tools/gate"
	"kvbench/tools/load"
)

// runGate reads both sides, judges, and writes in the format asked for. Its exit code is its
// result: 1 is a failed gate, and 2 says that nothing was compared. Flags that are wrong in
// themselves are found before any input is opened, the first mistake is told.
func runGate(c *Call) error {
	var o gate.Options
	o.Limits.Default = gate.DefaultLimit
	old, new := c.list("old"), c.list("new")
	c.Var(&o.Limits, "max-regress", "")
	c.Float64Var(&o.Alpha, "alpha", 0.05, "")
	format := c.String("format", "text", "")
	ignore := c.String("ignore", "", "")
	c.BoolVar(&o.AllowFew, "allow-few", false, "")
	c.BoolVar(&o.AllowMissing, "allow-missing", false, "")
	c.BoolVar(&o.All, "all", false, "")
	rest, err := c.parse()
	ignored, wrong := overlooked(*ignore)
	o.Ignore = ignored
	form := gate.Formats[*format]
	switch {
	case err != nil:
		return err
	case len(rest) > 0:
		return fmt.Errorf("unexpected %q: inputs are given as -old IN -new IN, each repeatable",
			rest[0])
	case len(*old) == 0 || len(*new) == 0:
		return errors.New("-old and -new are both needed, for example: kvreport gate -old a.txt " +
			"-new b.txt")
	case slices.Contains(*old, load.Stdin) && slices.Contains(*new, load.Stdin):
		return errors.New("only one of -old and -new can be standard input")
	case form == nil:
		return fmt.Errorf("-format: must be text, markdown or github, given %q", *format)
	case !(o.Alpha > 0 && o.Alpha < 1):
		return fmt.Errorf("-alpha: must be between 0 and 1, given %g", o.Alpha)
	case wrong != nil:
		return wrong
	}
	// Bad lines are warned about on both sides alike; a side without any good line is an error.
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
	if r.Failed() {
		return errNo
	}
	return nil
}
