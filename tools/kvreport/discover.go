package main

import (
	"fmt"

	"kvbench/tools/discover"
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
