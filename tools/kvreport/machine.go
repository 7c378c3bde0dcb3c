package main

import (
	"errors"
	"fmt"

	"kvbench/kvbench/units"
	"kvbench/tools/dedup"
	"kvbench/tools/discover"
	"kvbench/tools/sizing"
)

// runDiscover describes this machine and a directory, by default the current one.
func runDiscover(c *Call) func([]string) error {
	asJSON := c.Bool("json", false, "")
	return func(dirs []string) error {
		if len(dirs) > 1 {
			return fmt.Errorf("one directory at most, given %d", len(dirs))
		}
		// The directory must exist.
		h, err := discover.Describe(append(dirs, ".")[0])
		if err != nil {
			return err
		}
		return encode(c.stdout, h, *asJSON)
	}
}

// runDatasize computes the needs of a run. Its flags are the benchmarks' parameters.
func runDatasize(c *Call) func([]string) error {
	q := sizing.NewQuestion(c.FlagSet)
	asJSON := c.Bool("json", false, "")
	return func(rest []string) error {
		// Compute everything before printing.
		answer, err := q.Answer(rest)
		if err != nil {
			return err
		}
		err = encode(c.stdout, answer, *asJSON)
		// If the run does not fit this machine, the answer is printed all the same.
		if err == nil && !answer.Fits() {
			err = errNo
		}
		return err
	}
}

// runDedup measures the files below the paths. It names unreadable files and reports the rest, with
// exit code 2. If it can read nothing, it reports nothing.
func runDedup(c *Call) func([]string) error {
	asJSON := c.Bool("json", false, "")
	blockSize := c.String("block-size", "4KiB", "")
	kept := c.Int("max-blocks", dedup.DefaultKept, "")
	return func(paths []string) error {
		block, err := units.ParseSize(*blockSize, 1)
		if err == nil {
			err = dedup.CheckBlock(block)
		}
		switch {
		case err != nil:
			return fmt.Errorf("-block-size: must be %w, given %s", err, *blockSize)
		case len(paths) == 0:
			return errors.New("no path; name files or directories, for example: kvreport dedup /mnt/kv")
		// The confidence interval of a smaller sample is useless.
		case *kept < 1024:
			return fmt.Errorf("-max-blocks: must be at least 1024, given %d", *kept)
		}
		r, err := dedup.Scan(paths, block, *kept)
		if err != nil {
			return err
		}
		for _, p := range r.Problems {
			c.say(p)
		}
		if r.Bytes > 0 {
			err = encode(c.stdout, r, *asJSON)
		} else if len(r.Problems) == 0 {
			err = errors.New("no data: the files are empty or there are none")
		}
		if err == nil && len(r.Problems) > 0 {
			err = errSaid
		}
		return err
	}
}
