package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"kvbench/tools/command"
	"kvbench/tools/gate"
	"kvbench/tools/load"
)

var gateCommand = command.Command{
	Name:  "gate",
	Args:  "-old IN… -new IN… [-max-regress METRIC=PERCENT,…] [-alpha 0.05] [-format text|markdown|github]",
	Short: "fail when new results are significantly worse than old ones",
	Long: `
Compares two sides and exits 1 when a metric is worse, 0 when none is. Worse means both: the medians differ significantly
(Mann-Whitney test, p below -alpha after Holm's correction for everything that is gated), and the new median is worse than
the old one by more than the metric's limit. Which direction is worse, the Unit lines of the input tell.

Gated is one headline metric per benchmark (read-B/s, else write-B/s, else ns/op) with a limit of 5%, and every metric that
-max-regress names, repeatable or separated by commas:
  read-p95-ns=10%   gate it too, it may lose 10%      read-p95-ns   gate it too, with the default limit
  default=3%        change the default limit

Run each side at least six times (-count 6). Three runs against three can never reach p = 0.05, and the more metrics are
gated, the more runs they need: what could not be significant whatever the difference is called "not enough samples", with
the number of runs that would do, and fails (-allow-few lets it pass). Beware of runs of the same day on a shared machine:
no test can tell its noise from a loss; run old and new alternately.

A benchmark or gated metric that the old side has and the new side has not is a failure (-allow-missing lets it pass).
Runs that differ in division, I/O mode, decode reads or in what the device time of a write is are refused: their numbers
mean different things; so are simulated runs against measured ones. Runs that differ in another parameter are refused
too, unless -ignore names it.

-format markdown writes a table for a comment or a job summary, -format github the annotations of GitHub Actions.
-all shows every metric. Exit codes: 0 passed, 1 not passed, 2 nothing was compared: wrong usage or input.`,
	Example: `
go test ./benchmarks -run '^$' -bench 'StorageCeiling|Tier' -count 6 -cache-dir /mnt/a > a.txt
go test ./benchmarks -run '^$' -bench 'StorageCeiling|Tier' -count 6 -cache-dir /mnt/b > b.txt
go tool kvreport gate -old a.txt -new b.txt -max-regress 'read-B/s=5%,read-p95-ns=10%'
go tool kvreport gate -old main/ -new pr/ -format markdown >> "$GITHUB_STEP_SUMMARY"`,
	Run: runGate,
}

// inputs is a flag that may be given several times.
type inputs []string

func (i *inputs) String() string     { return strings.Join(*i, " ") }
func (i *inputs) Set(s string) error { *i = append(*i, s); return nil }

func runGate(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	o, old, new, format, err := parseGate(args)
	if err != nil {
		return command.Fail(stderr, "gate", err)
	}
	t, err := gate.Read(old, new, stdin,
		func(err error) { fmt.Fprintf(stderr, "kvreport gate: %v\n", err) })
	if err != nil {
		return command.Fail(stderr, "gate", err)
	}
	r, err := gate.Judge(t, o)
	if err != nil {
		return command.Fail(stderr, "gate", err)
	}
	if len(r.Refusals) > 0 {
		for _, line := range r.Refused() {
			fmt.Fprintf(stderr, "kvreport gate: %s\n", line)
		}
		return command.Usage
	}
	write := map[string]func(io.Writer) error{"text": r.WriteText, "markdown": r.WriteMarkdown,
		"github": r.WriteGitHub}[format]
	if err := write(stdout); err != nil {
		return command.Fail(stderr, "gate", err)
	}
	if r.Failed() {
		return command.No
	}
	return command.Done
}

func parseGate(args []string) (o gate.Options, old, new inputs, format string, err error) {
	fs := command.Flags("gate")
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
	rest, err := command.Parse(fs, args)
	if ignore != "" {
		o.Ignore = strings.Split(ignore, ",")
	}
	strict := slices.IndexFunc(o.Ignore, load.Defines)
	switch {
	case err != nil:
	case len(rest) > 0:
		err = fmt.Errorf("unexpected %q: inputs are given as -old IN -new IN, each repeatable",
			rest[0])
	case len(old) == 0 || len(new) == 0:
		err = errors.New("-old and -new are both needed, for example: kvreport gate -old a.txt -new b.txt")
	case slices.Contains(old, load.Stdin) && slices.Contains(new, load.Stdin):
		err = errors.New("only one of -old and -new can be standard input")
	case !slices.Contains([]string{"text", "markdown", "github"}, format):
		err = fmt.Errorf("-format: must be text, markdown or github, given %q", format)
	case !(o.Alpha > 0 && o.Alpha < 1):
		err = fmt.Errorf("-alpha: must be between 0 and 1, given %g", o.Alpha)
	case strict >= 0:
		err = fmt.Errorf("-ignore: %s cannot be ignored: results that differ in it mean different things", o.Ignore[strict])
	}
	return o, old, new, format, err
}
