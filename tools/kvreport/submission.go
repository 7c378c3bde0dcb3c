package main

import (
	"kvbench/tools/discover"
	"kvbench/tools/submission"
)

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
