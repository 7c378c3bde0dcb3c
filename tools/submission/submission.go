package submission

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"kvbench/kvbench/result"
	"kvbench/tools/aggregate"
	"kvbench/tools/command"
	"kvbench/tools/discover"
	"kvbench/tools/load"
)

const name = "submission"

// Command is kvreport submission.
var Command = command.Command{
	Name:  name,
	Args:  "DIR -organisation O -system S -o OUT [-division closed|open] [-discover FILE]…",
	Short: "the directory tree of a submission, checked against the closed division",
	Long: `
Reads a results directory as kvreport aggregate does, checks it against the closed division, and builds
  OUT/closed/O/results/S/kv_cache/<model>/run/<start>/   the results by option, trial and rank; the run summary, check.md,
                                                         report.xlsx and report.html
  OUT/closed/O/systems/S.yaml                            the description of the system, filled in as far as it is known
  OUT/SHA256SUMS                                         for sha256sum -c

The check names every deviation: parameters, seed, trials, window, I/O as it really was, missing or failed ranks, ranks
served from memory, two ranks in one directory. With a deviation nothing is built and the exit code is 1; -division open
builds the tree below OUT/open instead and lists the deviations in check.md.

The description takes processors, memory, drive and filesystem from the results, and what they lack from kvreport discover
-json of the clients (-discover, repeatable). What only you know says "FILL IN". A second call writes the same files again,
keeps what else is in OUT, and never touches a description that is there. With a broken input OUT stays as it was.

Every page says "` + result.ClosedNotice + `": an official result needs MLCommons' own code.

Exit codes: 0 built, 1 deviations and nothing built, 2 nothing built: wrong usage or input.`,
	Example: `
./kvbench.test -test.bench 'MaxStorageStress|StorageThroughput|LargeModel' -division closed -cache-dir /mnt/kv -results-dir results
go tool kvreport discover /mnt/kv -json > client.json
go tool kvreport submission results -organisation acme -system flash7 -discover client.json -o submission`,
	Run: run,
}

// files is a flag that may be given several times.
type files []string

func (f *files) String() string     { return fmt.Sprint(*f) }
func (f *files) Set(s string) error { *f = append(*f, s); return nil }

func run(args []string, _ io.Reader, stdout, stderr io.Writer) int {
	p, err := parse(args)
	if err != nil {
		return command.Fail(stderr, name, err)
	}
	if err := p.read(); err != nil {
		return command.Fail(stderr, name, err)
	}
	s, err := aggregate.Aggregate(p.tree)
	p.check = CheckClosed(p.tree, s)
	if err != nil && p.division == result.DivisionClosed {
		p.check.add("all results", "they cannot be summed", "%v", err)
	} else if err != nil {
		return command.Fail(stderr, name, err)
	}
	if p.division == result.DivisionClosed && !p.check.Closed() {
		for _, d := range p.check.Deviations {
			fmt.Fprintf(stderr, "kvreport submission: %s: %s (%s)\n", optionName(d.Group), d.What, places(d.Where))
		}
		fmt.Fprintf(stderr, "kvreport submission: %d deviation(s) from the closed division, nothing was built; -division open builds %s/open\n",
			len(p.check.Deviations), p.out)
		return command.No
	}
	kept, err := p.publish()
	if err != nil {
		return command.Fail(stderr, name, err)
	}
	top := filepath.Join(p.out, p.division, p.organisation)
	for _, model := range models(p.tree) {
		fmt.Fprintf(stdout, "run:         %s\n", filepath.Join(top, "results", p.system, "kv_cache", model, "run", s.Stamp()))
	}
	description := "fill in what says FILL IN"
	if kept {
		description = "yours, left as it was"
	}
	fmt.Fprintf(stdout, "description: %s (%s)\n", filepath.Join(top, "systems", p.system+".yaml"), description)
	fmt.Fprintf(stdout, "checksums:   %s\n", filepath.Join(p.out, manifestName))
	fmt.Fprintf(stdout, "closed:      %s\n", verdict(p.check))
	fmt.Fprintln(stdout, result.ClosedNotice)
	return command.Done
}

func verdict(c *Check) string {
	if c.Closed() {
		return "nothing deviates"
	}
	return fmt.Sprintf("%d deviation(s), listed in check.md", len(c.Deviations))
}

func parse(args []string) (*plan, error) {
	p := &plan{hardware: make(map[string]discover.Hardware)}
	fs := command.Flags(name)
	fs.StringVar(&p.organisation, "organisation", "", "")
	fs.StringVar(&p.organisation, "organization", "", "")
	fs.StringVar(&p.system, "system", "", "")
	fs.StringVar(&p.out, "o", "", "")
	fs.StringVar(&p.division, "division", result.DivisionClosed, "")
	var described files
	fs.Var(&described, "discover", "")
	dirs, err := command.Parse(fs, args)
	switch {
	case err != nil:
		return nil, err
	case len(dirs) != 1:
		return nil, errors.New("one results directory is needed, for example: kvreport submission results -organisation acme -system flash7 -o submission")
	case p.out == "":
		return nil, errors.New("no output; give -o OUT")
	case p.division != result.DivisionClosed && p.division != result.DivisionOpen:
		return nil, fmt.Errorf("-division: must be closed or open, given %q", p.division)
	}
	p.dir = dirs[0]
	for _, given := range []struct{ flag, value string }{{"organisation", p.organisation}, {"system", p.system}} {
		if !plainName.MatchString(given.value) {
			return nil, fmt.Errorf("-%s: must be a name of letters, digits, dot, dash and underscore (it becomes a directory), given %q", given.flag, given.value)
		}
	}
	for _, path := range described {
		h, err := discover.ReadFile(path)
		if err != nil {
			return nil, err
		}
		p.hardware[h.Hostname] = h
	}
	return p, nil
}

// read loads the results and keeps those of KV-cache workloads.
func (p *plan) read() error {
	t, err := load.ReadTree(p.dir)
	if err != nil {
		return err
	}
	kept := t.Files[:0]
	for _, f := range t.Files {
		switch {
		case f.Python:
			return fmt.Errorf("%s is a result of the Python benchmark: its own tools submit it", filepath.Join(p.dir, f.Path))
		case f.Result.Simulation != nil:
			return fmt.Errorf("%s is simulated: no storage had a part in it, so there is nothing to submit; name a directory of measured results",
				filepath.Join(p.dir, f.Path))
		case f.Result.Model.Key == "" || f.Result.CompletionUnit == result.UnitOperation:
			t.Warnings = append(t.Warnings, fmt.Sprintf("%s: left out, %s is no KV-cache workload", f.Path, f.Group))
		default:
			kept = append(kept, f)
		}
	}
	if t.Files = kept; len(kept) == 0 {
		return fmt.Errorf("%s: no result of a KV-cache workload in it", p.dir)
	}
	p.tree = t
	return nil
}
