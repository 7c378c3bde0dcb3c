package main

import (
	"cmp"
	"path/filepath"

	"kvbench/kvbench/merge"
	"kvbench/tools/discover"
	"kvbench/tools/load"
	"kvbench/tools/submission"
)

// runAggregate sums over the clients of a run. It writes next to the results, under the name that
// MLPerf Storage's tools read, unless -o names another place. A partial or invalid summary is
// written all the same, because there may be no other; the exit code shows it.
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
		// The text is for a terminal: a pipe gets the document alone.
		if err == nil && path != load.Stdin {
			err = s.WriteText(c.stdout, path)
		}
		if err == nil && !s.Good() {
			err = errNo
		}
		return err
	}
}

// runSubmission checks the results, and builds a whole tree or nothing; it reports deviations in
// any case.
func runSubmission(c *Call) func([]string) error {
	s := submission.Submission{Hardware: make(map[string]discover.Hardware)}
	c.StringVar(&s.Organisation, "organisation", "", "")
	// Both spellings are in use.
	c.StringVar(&s.Organisation, "organization", "", "")
	c.StringVar(&s.System, "system", "", "")
	c.StringVar(&s.Out, "o", "", "")
	c.StringVar(&s.Division, "division", "closed", "")
	c.StringVar(&s.Code, "code", "", "")
	described := c.list("discover") // each client describes itself
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
