package main

import (
	"errors"
	"fmt"

	"kvbench/tools/dedup"
)

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
