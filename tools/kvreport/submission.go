package main

import (
	"errors"
	"fmt"
	"io"

	"kvbench/tools/command"
	"kvbench/tools/discover"
	"kvbench/tools/submission"
)

var submissionCommand = command.Command{
	Name:  "submission",
	Args:  "DIR -organisation O -system S -o OUT [-division closed|open] [-discover FILE]…",
	Short: "the directory tree of a submission, checked against the closed division",
	Long: `
Reads a results directory as kvreport aggregate does, checks it against the closed division, and builds
  OUT/closed/O/results/S/kv_cache/<model>/run/<start>/   the results by option, trial and rank; the run summary, check.md,
                                                         report.xlsx and report.html
  OUT/closed/O/systems/S.yaml                            the description of the system, filled in as far as it is known

The check names every deviation: parameters, seed, trials, window, I/O as it really was, missing or failed ranks, ranks
served from memory, two ranks in one directory. With a deviation nothing is built and the exit code is 1; -division open
builds the tree below OUT/open instead and lists the deviations in check.md.

The description takes processors, memory, drive and filesystem from the results, and what they lack from kvreport discover
-json of the clients (-discover, repeatable). What only you know says "FILL IN". OUT must not hold anything yet: nothing is
added to a tree or replaced in it. With a broken input nothing is left behind.

Every page says "` + submission.Notice + `": an official result needs MLCommons' own code.

Exit codes: 0 built, 1 deviations and nothing built, 2 nothing built: wrong usage or input.`,
	Example: `
./kvbench.test -test.bench 'MaxStorageStress|StorageThroughput|LargeModel' -division closed -cache-dir /mnt/kv -results-dir results
go tool kvreport discover /mnt/kv -json > client.json
go tool kvreport submission results -organisation acme -system flash7 -discover client.json -o submission`,
	Run: runSubmission,
}

// files is a flag that may be given several times.
type files []string

func (f *files) String() string     { return fmt.Sprint(*f) }
func (f *files) Set(s string) error { *f = append(*f, s); return nil }

func runSubmission(args []string, _ io.Reader, stdout, stderr io.Writer) int {
	s := submission.Submission{Hardware: make(map[string]discover.Hardware)}
	fs := command.Flags("submission")
	fs.StringVar(&s.Organisation, "organisation", "", "")
	fs.StringVar(&s.Organisation, "organization", "", "")
	fs.StringVar(&s.System, "system", "", "")
	fs.StringVar(&s.Out, "o", "", "")
	fs.StringVar(&s.Division, "division", "closed", "")
	var described files
	fs.Var(&described, "discover", "")
	dirs, err := command.Parse(fs, args)
	if err == nil && len(dirs) != 1 {
		err =
			errors.New("one results directory is needed, for example: kvreport submission results" +
				" -organisation acme -system flash7 -o submission")
	}
	if err == nil {
		err = s.Validate()
	}
	for _, path := range described {
		if err != nil {
			break
		}
		var h discover.Hardware
		h, err = discover.ReadFile(path)
		s.Hardware[h.Hostname] = h
	}
	if err != nil {
		return command.Fail(stderr, "submission", err)
	}
	s.Dir = dirs[0]
	built, err := s.Run(stdout, stderr)
	if err != nil {
		return command.Fail(stderr, "submission", err)
	}
	if !built {
		return command.No
	}
	return command.Done
}
