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

// curveFormats are the output formats. The first is the default.
var curveFormats = []string{"text", "json", "csv", "html"}

// runCurve computes the hit ratio of caches of all capacities. It reports every mistake in the flags
// before it reads a trace, which may take minutes.
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
		// A page on standard output would fill the terminal.
		if *format == "html" && *out == "" {
			return errors.New("-format html needs -o FILE")
		}
		r, err := curve.Run(o, paths)
		if err != nil {
			return c.mistakes(err)
		}
		c.inputs = r.Files // the files in directories and patterns
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

// runConvert writes block traces as Mooncake's JSON lines. The summary goes to standard error.
func runConvert(c *Call) func([]string) error {
	o := curve.NewConvertOptions(c.FlagSet)
	out := c.String("o", "", "file to write; without it standard output")
	return func(paths []string) error {
		cfg, err := o.Check(paths)
		if err != nil {
			return c.mistakes(err)
		}
		c.inputs = cfg.Paths // the files in directories and patterns
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

// runTrace traces processes or a device. Ctrl-C and SIGTERM end the tracing; the report follows.
func runTrace(c *Call) func([]string) error {
	opt := trace.NewOptions(c.FlagSet)
	return func(rest []string) error {
		if err := opt.Check(rest); err != nil {
			return err
		}
		// The signal ends the tracing; the report covers the time until then.
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		// say writes notes between the live lines.
		job, document, err := trace.Run(ctx, opt, c.stdout, c.stderr, c.say)
		if err != nil {
			c.say(strings.TrimPrefix(err.Error(), "trace: ")) // say adds the command's name
			if nothing := new(trace.NothingError); errors.As(err, &nothing) {
				return errNo
			}
			return errSaid
		}
		// Write the trace first: a job can be made of it again.
		if opt.JSON != "" {
			if err := c.writeText(opt.JSON, string(document)); err != nil {
				return err
			}
		}
		return c.writeTraced(job, opt.Fio)
	}
}

// writeTraced writes the fio job to a file, or to standard output after an empty line.
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

// runFio makes fio jobs of traces. It checks -window before it reads a trace.
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

// writeJobs writes one job to the file out, or several jobs into the directory out. It never writes
// several jobs to standard output: fio would run them as one job.
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

// runDevice prints the device model, as text a value for -simulate-device. The reasons go to standard
// error.
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
