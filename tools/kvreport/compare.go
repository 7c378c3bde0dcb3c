package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"kvbench/tools/gate"
	"kvbench/tools/load"
)

// namedCommand matches a side with a name of its own.
var namedCommand = regexp.MustCompile(`(?s)^([\w.-]+)=(.+)$`)

// runTurns runs the commands of both sides in turns. The exit code is 1 if a run failed, and 3 if there
// are too few runs to show anything.
func runTurns(c *Call) func([]string) error {
	// A command is one string for the shell, because two lists of words on one command line cannot be
	// distinguished.
	t := gate.Turns{Names: gate.Sides}
	c.StringVar(&t.Commands[0], "old", "", "")
	c.StringVar(&t.Commands[1], "new", "", "")
	c.IntVar(&t.Count, "count", 8, "")
	c.StringVar(&t.Dir, "out", "", "")
	c.BoolVar(&t.StopEarly, "stop-early", false, "")
	check := c.gateOptions(&t.Options)
	return func(rest []string) error {
		named := len(rest) == 2 && t.Commands == [2]string{}
		for side := range rest {
			m := namedCommand.FindStringSubmatch(rest[side])
			if named = named && m != nil; named {
				t.Names[side], t.Commands[side] = m[1], m[2]
			}
		}
		var wrong mistakes
		wrong.check(len(rest) == 0 || named, "unexpected %q: the sides are -old COMMAND and -new COMMAND, or "+
			"two arguments NAME=COMMAND; a command with spaces stands in quotes", rest)
		wrong.check(t.Commands[0] != "" && t.Commands[1] != "" && t.Dir != "", "two commands and -out are "+
			"needed: -old COMMAND -new COMMAND, or two arguments NAME=COMMAND, and a directory for what they print")
		wrong.check(t.Names[0] != t.Names[1], "both sides are named %s: their outputs need two names", t.Names[0])
		wrong.check(!t.StopEarly || !named, "-stop-early is for -old and -new: sides with names have no limit "+
			"to be decided")
		wrong.check(t.Count > 0, "-count: must be the number of runs of each side, given %d", t.Count)
		if err := errors.Join(append(wrong, check())...); err != nil {
			return err
		}
		// Print a line per run. The output of the runs goes to files: it is too long for a CI log.
		t.Say = func(text string) {
			run, trials, several := strings.Cut(text, "\n")
			if c.say(run); several {
				fmt.Fprintln(c.stderr, trials)
			}
		}
		t.Drives = named
		t.LiveLine = named && onTerminal(c.stderr) // the old program of a gate may not have it
		// A signal interrupts the current run, which removes its files. The outputs of earlier runs
		// stay.
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		failed, err := t.Run(ctx)
		switch {
		// The usage is correct: fewer metrics would need fewer runs.
		case errors.Is(err, gate.ErrFew):
			return &exit{Undecided, err}
		case err != nil:
			return err
		// kvreport gate judges the failed runs.
		case failed > 0:
			return errNo
		case t.Drives:
			c.say(fmt.Sprintf("which is faster at what: kvreport quote %s.txt %s.txt",
				filepath.Join(t.Dir, t.Names[0]), filepath.Join(t.Dir, t.Names[1])))
		}
		return nil
	}
}

// gateOptions defines the flags of what is compared and of the level, for gate and for turns: they
// determine the number of runs. It returns a function that checks them.
func (c *Call) gateOptions(o *gate.Options) (check func() error) {
	o.Limits.Default = gate.DefaultLimit
	c.Var(&o.Limits, "max-regress", "")
	c.Float64Var(&o.Alpha, "alpha", 0.05, "")
	c.BoolVar(&o.AllowFew, "allow-few", false, "")
	ignore := c.String("ignore", "", "")
	return func() (err error) {
		if !(o.Alpha > 0 && o.Alpha < 1) { // a percentage, for example
			return fmt.Errorf("-alpha: must be between 0 and 1, given %g", o.Alpha)
		}
		o.Ignore, err = overlooked(*ignore)
		return err
	}
}

// runGate reads both sides, judges them and writes the report. The exit code is 1 if the gate fails, 3
// if it is undecided, and 2 if nothing was compared. It reports all wrong flags before it reads an input.
func runGate(c *Call) func([]string) error {
	var o gate.Options
	old, new := c.list("old"), c.list("new")
	check := c.gateOptions(&o)
	format := c.String("format", "text", "")
	c.BoolVar(&o.AllowBlind, "allow-blind", false, "")
	c.BoolVar(&o.AllowFailed, "allow-failed", false, "")
	c.IntVar(&o.Count, "count", 0, "")
	c.BoolVar(&o.AllowMissing, "allow-missing", false, "")
	c.BoolVar(&o.All, "all", false, "")
	return func(rest []string) error {
		form := gate.Formats[*format]
		var wrong mistakes
		wrong.check(len(rest) == 0, "unexpected %q: inputs are given as -old IN -new IN, each repeatable", rest)
		wrong.check(len(*old) > 0 && len(*new) > 0, "-old and -new are both needed, for example: kvreport gate "+
			"-old a.txt -new b.txt")
		wrong.check(!slices.Contains(*old, load.Stdin) || !slices.Contains(*new, load.Stdin),
			"only one of -old and -new can be standard input")
		wrong.check(form != nil, "-format: must be one of %s, given %q",
			strings.Join(slices.Sorted(maps.Keys(gate.Formats)), ", "), *format)
		wrong.check(o.Count >= 0, "-count: must be the number of trials of each side, given %d", o.Count)
		if err := errors.Join(append(wrong, check())...); err != nil {
			return err
		}
		// A bad line is a warning. A side without a good line is an error.
		t, err := gate.Read(*old, *new, o.Ignore, c.stdin, c.warn)
		if err != nil {
			return err
		}
		r, err := gate.Judge(t, o)
		if err != nil {
			return err
		}
		// Nothing was compared: print no report, so that a pipeline does not post one, and exit with 2.
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
