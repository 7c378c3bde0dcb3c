package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"kvbench/tools/curve"
	"kvbench/tools/load"
	"kvbench/tools/sizing"
	"kvbench/tools/view/html"
)

// curveFormats are the output formats. The first is the default.
var curveFormats = []string{"text", "json", "csv", "html"}

// piped returns a command whose path "-" is standard input. Traces are read more than once, so it copies that to
// a temporary file.
func piped(command func(*Call) func([]string) error) func(*Call) func([]string) error {
	return func(c *Call) func([]string) error {
		run := command(c)
		return func(paths []string) error {
			if i := slices.Index(paths, load.Stdin); i >= 0 {
				f, err := os.CreateTemp("", "stdin-")
				if err == nil {
					defer os.Remove(f.Name())
					paths[i] = f.Name()
					_, err = io.Copy(f, c.stdin)
					err = errors.Join(err, f.Close())
				}
				if err != nil {
					return fmt.Errorf("standard input: %w", err)
				}
			}
			return run(paths)
		}
	}
}

// runCurve computes the hit ratio of caches of all capacities. It reports every mistake in the flags
// before it reads a trace, which may take minutes.
func runCurve(c *Call) func([]string) error {
	o := curve.NewOptions(c.FlagSet)
	out := c.String("o", "", "")
	format := c.String("format", "", "")
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
			return err
		}
		c.inputs = r.Files // the files in directories and patterns
		return c.write(*out, func(w io.Writer) error {
			switch *format {
			case "html":
				return html.WritePage(w, r.Page())
			case "csv":
				heads, rows := r.Cells()
				return writeCSV(w, heads, rows)
			}
			return encode(w, r, *format == "json")
		})
	}
}

// runConvert writes block traces as Mooncake's JSON lines. The summary goes to standard error.
func runConvert(c *Call) func([]string) error {
	o := curve.NewConvertOptions(c.FlagSet)
	out := c.String("o", "", "")
	return func(paths []string) error {
		cfg, err := o.Check(paths)
		if err != nil {
			return err
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

// runDevice prints the device model, as text a value for -simulate-device. The reasons go to standard
// error.
func runDevice(c *Call) func([]string) error {
	format := c.String("format", "text", "")
	return func(in []string) error {
		if *format != "text" && *format != "json" {
			return fmt.Errorf("-format: must be text or json, given %q", *format)
		}
		drive, err := sizing.Device(in, c.stdin, c.warn)
		if err != nil {
			return err
		}
		for _, why := range drive.Reasons {
			fmt.Fprintln(c.stderr, why)
		}
		return encode(c.stdout, drive, *format == "json")
	}
}
