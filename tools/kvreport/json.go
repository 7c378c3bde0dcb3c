package main

import (
	"io"

	"kvbench/tools/load"
)

// runJSON archives results: one file instead of a directory, which every other command reads. It
// writes the document after reading everything, so that a broken input leaves no partial one.
func runJSON(c *Call) func([]string) error {
	out := c.String("o", "", "file to write; without it standard output")
	return func(in []string) error {
		records, units, err := load.All(in, load.Options{Stdin: c.stdin, Warn: c.warn})
		if err != nil {
			return err
		}
		return c.write(*out, func(w io.Writer) error {
			return load.WriteDocument(w, records, units)
		})
	}
}
