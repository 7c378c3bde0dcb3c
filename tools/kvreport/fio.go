package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"kvbench/tools/load"
	"kvbench/tools/trace"
)

// runFio distils traces. It checks the window before anything is read: reading a large trace takes
// seconds.
func runFio(c *Call) func([]string) error {
	out := c.String("o", "", "file, or directory for several jobs; without it standard output")
	window := c.Duration("window", 0,
		"how long there was load while a bpftrace text was traced; 0 = unknown")
	return func(in []string) error {
		if *window < 0 {
			return fmt.Errorf("-window %s must not be negative", *window)
		}
		jobs, err := trace.Jobs(in, c.stdin, *window, c.warn)
		if err != nil {
			return err
		}
		return writeJobs(c, jobs, *out)
	}
}

// writeJobs writes one job to out, or several into the directory out. Several jobs never go to
// standard output: fio would run them as one.
func writeJobs(c *Call, jobs []trace.Job, out string) error {
	// out is a directory if it exists as one or ends in a slash.
	info, err := os.Stat(out)
	isDir := strings.HasSuffix(out, string(filepath.Separator)) || (err == nil && info.IsDir())
	switch {
	case len(jobs) == 1 && (!isDir || out == load.Stdin):
		return c.writeText(out, jobs[0].Text)
	case out == "" || out == load.Stdin:
		return fmt.Errorf("%d results were traced: give a directory with -o, each becomes a file "+
			"of its own", len(jobs))
	}
	// The umask restricts the mode.
	if err := os.MkdirAll(out, 0o777); err != nil {
		return fmt.Errorf("making the directory for %d jobs: %w", len(jobs), err)
	}
	for _, j := range jobs {
		if err := c.writeText(filepath.Join(out, j.File), j.Text); err != nil {
			return err
		}
	}
	return nil
}
