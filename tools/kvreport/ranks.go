package main

import (
	"cmp"
	"path/filepath"

	"kvbench/kvbench/merge"
	"kvbench/tools/discover"
	"kvbench/tools/load"
	"kvbench/tools/submission"
)

// runAggregate writes the summary over the ranks and trials of a results directory, by default into
// that directory under the name that MLPerf Storage's tools read. A partial or invalid summary is
// written too; the exit code is then 1.
func runAggregate(c *Call) func([]string) error {
	out := c.String("o", "", "")
	return func(args []string) error {
		dir, err := c.directory(args, "kvbench-results/20260908-120000-4711")
		if err != nil {
			return err
		}
		t, err := merge.ReadTree(dir)
		if err != nil {
			return err
		}
		// A run that starts its ranks makes the same summary of the same files.
		s := merge.Aggregate(t)
		for _, w := range s.Warnings {
			c.say(w)
		}
		path := cmp.Or(*out, filepath.Join(dir, merge.SummaryFile))
		err = c.write(path, s.WriteJSON)
		// Print the text only if standard output does not get the document.
		if err == nil && path != load.Stdin {
			err = s.WriteText(c.stdout, path)
		}
		if err == nil && !s.Good() {
			err = errNo
		}
		return err
	}
}

// runSubmission checks the results and builds a submission, completely or not at all. It reports
// deviations in both cases.
func runSubmission(c *Call) func([]string) error {
	s := submission.Submission{Hardware: make(map[string]discover.Hardware)}
	c.StringVar(&s.Organisation, "organisation", "", "")
	// Both spellings are in use.
	c.StringVar(&s.Organisation, "organization", "", "")
	c.StringVar(&s.System, "system", "", "")
	c.StringVar(&s.Out, "o", "", "")
	c.StringVar(&s.Division, "division", "closed", "")
	c.StringVar(&s.Code, "code", "", "")
	c.StringVar(&s.Checker, "checker", "", "")
	described := c.list("discover") // one file per client
	return func(args []string) error {
		var err error
		s.Dir, err = c.directory(args, "results -organisation acme -system flash7 -o submission")
		if err == nil {
			err = s.Validate()
		}
		if err != nil {
			return err
		}
		for _, path := range *described {
			h, err := discover.ReadFile(path)
			if err != nil {
				return err
			}
			s.Hardware[h.Hostname] = h
		}
		built, err := s.Run(c.stdout, c.say)
		if err == nil && !built {
			err = errNo
		}
		return err
	}
}
