package main

import (
	"errors"
	"fmt"
	"io"

	"kvbench/tools/load"
)

// runJSON archives results: one file instead of a directory, which every other command reads. It
// writes the document after reading everything, so that a broken input leaves no partial one. In
// the format of the Python benchmark each result is a document of its own.
func runJSON(c *Call) func([]string) error {
	out := c.String("o", "", "file to write; without it standard output")
	format := c.String("format", "kvbench", "kvbench, or python: each result with the keys of the "+
		"Python benchmark before its own, for that benchmark's tools")
	return func(in []string) error {
		records, units, err := load.All(in, load.Options{Stdin: c.stdin, Warn: c.warn})
		switch {
		case err != nil:
			return err
		case *format == "kvbench":
			return c.write(*out, func(w io.Writer) error {
				return load.WriteDocument(w, records, units)
			})
		case *format != "python":
			return fmt.Errorf("-format %s: it is kvbench or python", *format)
		case *out != "" && len(records) != 1:
			return errors.New("-format python: a file holds one result; name one result, or leave " +
				"out -o")
		}
		return c.write(*out, func(w io.Writer) error { return writePython(w, records) })
	}
}

// writePython writes the results one after the other.
func writePython(w io.Writer, records []*load.Record) error {
	for _, rec := range records {
		data := []byte(rec.Raw)
		if rec.Result != nil {
			var err error
			if data, err = rec.Result.EncodePython(); err != nil {
				return err
			}
		}
		if _, err := w.Write(data); err != nil {
			return err
		}
	}
	return nil
}
