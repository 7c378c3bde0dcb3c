package main

import (
	"errors"
	"fmt"

	"kvbench/tools/dedup"
	"kvbench/tools/discover"
	"kvbench/tools/sizing"
)

// runDiscover describes this machine and one directory of it, by default the current one: the
// advice is about that directory's drive.
func runDiscover(c *Call) func([]string) error {
	asJSON := c.Bool("json", false, "")
	return func(dirs []string) error {
		if len(dirs) > 1 {
			return fmt.Errorf("one directory at most, given %d", len(dirs))
		}
		// A directory that does not exist has no filesystem to describe.
		h, err := discover.Describe(append(dirs, ".")[0])
		if err != nil {
			return err
		}
		return c.print(h, *asJSON)
	}
}

// runDatasize computes the needs of a future run, so its arguments are that run's.
func runDatasize(c *Call) func([]string) error {
	q := sizing.NewQuestion(c.FlagSet)
	asJSON := c.Bool("json", false, "")
	return func(rest []string) error {
		// Everything is computed before anything is printed: partial needs would be misleading.
		answer, err := q.Answer(rest)
		if err != nil {
			return c.mistakes(err)
		}
		err = c.print(answer, *asJSON)
		// A result that does not fit is printed in full.
		if err == nil && !answer.Fits() {
			err = errNo
		}
		return err
	}
}

// runDedup reads everything below its paths once. It names unreadable files and reports the rest:
// the share of a part is useful. It fails when it could read nothing.
func runDedup(c *Call) func([]string) error {
	asJSON := c.Bool("json", false, "")
	kept := c.Int("max-blocks", dedup.DefaultKept, "")
	return func(paths []string) error {
		switch {
		case len(paths) == 0:
			return errors.New("no path; name files or directories, for example: kvreport dedup /mnt/kv")
		// The interval of a smaller sample is too wide to be useful.
		case *kept < 1024:
			return fmt.Errorf("-max-blocks: must be at least 1024, given %d", *kept)
		}
		r, err := dedup.Scan(paths, *kept)
		if err != nil {
			return err
		}
		for _, p := range r.Problems {
			c.say(p)
		}
		if r.Bytes > 0 {
			err = c.print(r, *asJSON)
		} else if len(r.Problems) == 0 {
			err = errors.New("no data: the files are empty or there are none")
		}
		if err == nil && len(r.Problems) > 0 {
			err = errSaid
		}
		return err
	}
}
