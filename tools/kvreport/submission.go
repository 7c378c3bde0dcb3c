package main

import (
	"errors"
	"fmt"
	"io"

	"kvbench/tools/discover"
	"kvbench/tools/submission"
)

// submissionCommand builds a tree or nothing.
var submissionCommand = Command{
	Name:  "submission",
	Args:  "DIR -organisation O -system S -o OUT [-division closed|open] [-discover FILE]…",
	Short: "the directory tree of a submission, checked against the closed division",
	Run:   runSubmission,
}

// files is a flag that may be given several times. Each client describes itself.
type files []string

func (f *files) String() string     { return fmt.Sprint(*f) }
func (f *files) Set(s string) error { *f = append(*f, s); return nil }

// runSubmission checks and builds; deviations are told in any case.
func runSubmission(args []string, _ io.Reader, stdout, stderr io.Writer) int {
	s := submission.Submission{Hardware: make(map[string]discover.Hardware)}
	fs := flags("submission")
	fs.StringVar(&s.Organisation, "organisation", "", "")
	// Both spellings are in use.
	fs.StringVar(&s.Organisation, "organization", "", "")
	fs.StringVar(&s.System, "system", "", "")
	fs.StringVar(&s.Out, "o", "", "")
	fs.StringVar(&s.Division, "division", "closed", "")
	var described files
	fs.Var(&described, "discover", "")
	// One results directory is one run.
	dirs, err := parse(fs, args)
	if err == nil && len(dirs) != 1 {
		err = errors.New("one results directory is needed, for example: kvreport submission " +
			"results -organisation acme -system flash7 -o submission")
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
		return fail(stderr, "submission", err)
	}
	s.Dir = dirs[0]
	built, err := s.Run(stdout, stderr)
	if err != nil {
		return fail(stderr, "submission", err)
	}
	if !built {
		return No
	}
	return Done
}
