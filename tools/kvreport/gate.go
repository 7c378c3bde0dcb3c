package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"kvbench/tools/gate"
	"kvbench/tools/load"
)

// gateCommand is the one whose exit code is its result: 1 is a failed gate, and 2 says that
// nothing was compared.
var gateCommand = Command{
	Name: "gate",
	Args: "-old IN… -new IN… [-max-regress METRIC=PERCENT,…] [-alpha 0.05] [-format " +
		"text|markdown|github]",
	Short: "fail when new results are significantly worse than old ones",
	Run:   runGate,
}

// inputs is a flag that may be given several times. Shells expand a pattern into several
// arguments; a flag takes one, so that it is given again.
type inputs []string

func (i *inputs) String() string     { return strings.Join(*i, " ") }
func (i *inputs) Set(s string) error { *i = append(*i, s); return nil }

// runGate reads both sides, judges, and writes in the format asked for. Refusals go to standard
// error: a report that a pipeline posts must not look like a comparison.
func runGate(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	o, old, new, format, err := parseGate(args)
	if err != nil {
		return fail(stderr, "gate", err)
	}
	// Bad lines are warned about on both sides alike; a side without any good line is an error.
	t, err := gate.Read(old, new, stdin, warner(stderr, "gate"))
	if err != nil {
		return fail(stderr, "gate", err)
	}
	r, err := gate.Judge(t, o)
	if err != nil {
		return fail(stderr, "gate", err)
	}
	// Nothing was compared: no table, and the exit code of wrong usage.
	if len(r.Refusals) > 0 {
		for _, line := range r.Refused() {
			fmt.Fprintf(stderr, "kvreport gate: %s\n", line)
		}
		return Usage
	}
	write := map[string]func(io.Writer) error{"text": r.WriteText, "markdown": r.WriteMarkdown,
		"github": r.WriteGitHub}[format]
	if err := write(stdout); err != nil {
		return fail(stderr, "gate", err)
	}
	// 1 and not 2: the comparison worked.
	if r.Failed() {
		return No
	}
	return Done
}

// parseGate reports the first mistake. Flags that are wrong in themselves are found before any
// input is opened.
func parseGate(args []string) (o gate.Options, old, new inputs, format string, err error) {
	fs := flags("gate")
	o.Limits.Default = gate.DefaultLimit
	var ignore string
	fs.Var(&old, "old", "")
	fs.Var(&new, "new", "")
	fs.Var(&o.Limits, "max-regress", "")
	fs.Float64Var(&o.Alpha, "alpha", 0.05, "")
	fs.StringVar(&format, "format", "text", "")
	fs.StringVar(&ignore, "ignore", "", "")
	fs.BoolVar(&o.AllowFew, "allow-few", false, "")
	fs.BoolVar(&o.AllowMissing, "allow-missing", false, "")
	fs.BoolVar(&o.All, "all", false, "")
	rest, err := parse(fs, args)
	// Nothing to ignore is no name, and not an empty one.
	if ignore != "" {
		o.Ignore = strings.Split(ignore, ",")
	}
	// What defines numbers cannot be ignored, whoever asks.
	strict := slices.IndexFunc(o.Ignore, load.Defines)
	switch {
	case err != nil:
	case len(rest) > 0:
		err = fmt.Errorf("unexpected %q: inputs are given as -old IN -new IN, each repeatable",
			rest[0])
	case len(old) == 0 || len(new) == 0:
		err = errors.New("-old and -new are both needed, for example: kvreport gate -old a.txt " +
			"-new b.txt")
	case slices.Contains(old, load.Stdin) && slices.Contains(new, load.Stdin):
		err = errors.New("only one of -old and -new can be standard input")
	case !slices.Contains([]string{"text", "markdown", "github"}, format):
		err = fmt.Errorf("-format: must be text, markdown or github, given %q", format)
	case !(o.Alpha > 0 && o.Alpha < 1):
		err = fmt.Errorf("-alpha: must be between 0 and 1, given %g", o.Alpha)
	case strict >= 0:
		err = fmt.Errorf("-ignore: %s cannot be ignored: results that differ in it mean "+
			"different things", o.Ignore[strict])
	}
	return o, old, new, format, err
}
