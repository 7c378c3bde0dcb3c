package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"kvbench/tools/curve"
	"kvbench/tools/load"
	"kvbench/tools/sizing"
	"kvbench/tools/trace"
	"kvbench/tools/view/html"
)

// curveFormats are the output formats, the first by default.
var curveFormats = []string{"text", "json", "csv", "html"}

// runCurve computes how large a cache must be. Every mistake on the command line is reported before a
// trace is read, which may take minutes.
func runCurve(c *Call) func([]string) error {
	o := curve.NewOptions(c.FlagSet)
	out := c.String("o", "", "file to write; without it standard output")
	format := c.String("format", "", "text, json, csv or html; that of -o's name, else text")
	return func(paths []string) error {
		if *format == "" {
			*format = strings.TrimPrefix(filepath.Ext(*out), ".")
			if !slices.Contains(curveFormats, *format) {
				*format = curveFormats[0]
			}
		}
		if !slices.Contains(curveFormats, *format) {
			return fmt.Errorf("-format: must be one of %s, given %s", strings.Join(curveFormats, ", "),
				*format)
		}
		// A page on standard output would fill the terminal when -o is forgotten.
		if *format == "html" && *out == "" {
			return errors.New("-format html needs -o FILE")
		}
		r, err := curve.Run(o, paths)
		if err != nil {
			return c.mistakes(err)
		}
		c.inputs = r.Files // of directories and patterns
		return c.write(*out, func(w io.Writer) error {
			switch *format {
			case "html":
				return html.WritePage(w, r.Page())
			case "csv":
				return r.WriteCSV(w)
			}
			return encode(w, r, *format == "json")
		})
	}
}

// runConvert writes block traces as Mooncake's JSON lines. The summary of the rows goes to standard
// error, so that the lines can be piped.
func runConvert(c *Call) func([]string) error {
	o := curve.NewConvertOptions(c.FlagSet)
	out := c.String("o", "", "file to write; without it standard output")
	return func(paths []string) error {
		cfg, err := o.Check(paths)
		if err != nil {
			return c.mistakes(err)
		}
		c.inputs = cfg.Paths // of directories and patterns
		var notes []string
		err = c.write(*out, func(w io.Writer) error {
			notes, err = o.Run(cfg, w)
			return err
		})
		for _, line := range notes {
			c.say(line)
		}
		return err
	}
}

// runTrace traces other processes until the time is over. Ctrl-C and SIGTERM end the tracing, not
// the report.
func runTrace(c *Call) func([]string) error {
	opt := trace.NewOptions(c.FlagSet)
	return func(rest []string) error {
		if err := opt.Check(rest); err != nil {
			return err
		}
		// The signal ends the tracing; the report covers the time until then.
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		// Notes stand between live lines and must not be lost in them.
		job, document, err := trace.Run(ctx, opt, c.stdout, c.stderr, c.say)
		if err != nil {
			c.say(strings.TrimPrefix(err.Error(), "trace: ")) // the command's name says it
			if nothing := new(trace.NothingError); errors.As(err, &nothing) {
				return errNo
			}
			return errSaid
		}
		// The trace first: a job can be made of it again.
		if opt.JSON != "" {
			if err := c.writeText(opt.JSON, string(document)); err != nil {
				return err
			}
		}
		return c.writeTraced(job, opt.Fio)
	}
}

// writeTraced writes the job to its file. On standard output an empty line separates it from the
// report.
func (c *Call) writeTraced(job, path string) (err error) {
	switch path {
	case "":
	case load.Stdin:
		_, err = fmt.Fprint(c.stdout, "\n", job)
	default:
		if err = c.writeText(path, job); err == nil {
			_, err = fmt.Fprintf(c.stdout, "fio job: %s\n", path)
		}
	}
	return err
}

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

// runDevice prints one line on standard output, which scripts pass to -simulate-device. The reasons
// go to standard error, so that a user can judge the fit. The other formats are documents.
func runDevice(c *Call) func([]string) error {
	format := c.String("format", "text", sizing.Formats)
	return func(in []string) error {
		text, reasons, err := sizing.Device(in, c.stdin, *format, c.warn)
		if err != nil {
			return err
		}
		for _, why := range reasons {
			fmt.Fprintln(c.stderr, why)
		}
		fmt.Fprintln(c.stdout, text)
		return nil
	}
}
