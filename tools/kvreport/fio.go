package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"kvbench/tools/load"
	"kvbench/tools/trace"
)

// fioCommand distils traces. One job is a file, several need a directory.
var fioCommand = Command{
	Name:  "fio",
	Args:  "IN… [-o FILE|DIR] [-window DURATION]",
	Short: "one fio job per traced result, which makes the same load elsewhere",
	Run:   runFio,
}

// runFio checks the window before anything is read: reading a large trace takes seconds.
func runFio(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	fs := flags("fio")
	out := fs.String("o", "", "file, or directory for several jobs; without it standard output")
	window := fs.Duration("window", 0,
		"how long there was load while a bpftrace text was traced; 0 = unknown")
	in, err := parse(fs, args)
	if err == nil && *window < 0 {
		err = fmt.Errorf("-window %s must not be negative", *window)
	}
	var jobs []trace.Job
	if err == nil {
		jobs, err = trace.Jobs(in, stdin, *window, warner(stderr, "fio"))
	}
	if err == nil {
		err = writeJobs(jobs, *out, stdout)
	}
	if err != nil {
		return fail(stderr, "fio", err)
	}
	return Done
}

// writeJobs puts one job where out says, or several into the directory out. Several jobs never go
// to standard output: fio would run them as one.
func writeJobs(jobs []trace.Job, out string, stdout io.Writer) error {
	// A directory is one that is there, or one that is spelled as one.
	info, err := os.Stat(out)
	isDir := out != "" && (strings.HasSuffix(out, string(filepath.Separator)) ||
		(err == nil && info.IsDir()))
	toStdout := out == "" || out == load.Stdin
	switch {
	case len(jobs) == 1 && toStdout:
		_, err := io.WriteString(stdout, jobs[0].Text)
		return err
	case len(jobs) == 1 && !isDir:
		return writeText(out, jobs[0].Text)
	case toStdout:
		return fmt.Errorf("%d results were traced: give a directory with -o, each becomes a file "+
			"of its own", len(jobs))
	}
	// The umask has the last word.
	if err := os.MkdirAll(out, 0o777); err != nil {
		return fmt.Errorf("making the directory for %d jobs: %w", len(jobs), err)
	}
	for _, j := range jobs {
		if err := writeText(filepath.Join(out, j.File), j.Text); err != nil {
			return err
		}
	}
	return nil
}

// writeText writes a whole file or none.
func writeText(path, text string) error {
	return writeFile(path, func(w io.Writer) error {
		_, err := io.WriteString(w, text)
		return err
	})
}
