package main

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"kvbench/tools/curve"
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
