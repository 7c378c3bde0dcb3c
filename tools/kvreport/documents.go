package main

import (
	"errors"
	"io"
	"strings"

	"kvbench/tools/load"
	"kvbench/tools/stats"
	"kvbench/tools/view"
	"kvbench/tools/view/html"
	"kvbench/tools/view/xlsx"
)

// runHTML makes a page of everything that is read.
func runHTML(c *Call) func([]string) error { return document(c, html.Write) }

// runXLSX makes a workbook of everything that is read.
func runXLSX(c *Call) func([]string) error { return document(c, xlsx.Write) }

// document is the body of a command "kvreport NAME IN… -o FILE" that turns all results into one
// file: it reads everything, warns of bad lines and of missing data on stderr, and writes the whole
// file or nothing. A bad line costs only itself; an unreadable input is an error, because its
// absence in the page would not be noticed.
func document(c *Call, write func(io.Writer, []*load.Record, *stats.Table) error,
) func([]string) error {
	path := c.String("o", "", "file to write")
	ignore := c.String("ignore", "", "settings in which trials of one row may differ")
	return func(in []string) error {
		ignored, err := overlooked(*ignore)
		if err != nil {
			return err
		}
		// A page on standard output would fill the terminal when -o is forgotten.
		if *path == "" {
			return errors.New("no output; give -o FILE")
		}
		records, units, err := load.All(in, load.Options{Stdin: c.stdin, Warn: c.warn,
			Trials: true})
		if err != nil {
			return err
		}
		// Missing data are reported twice: here, and in the document.
		table := stats.Build(records, units, ignored...)
		for _, n := range append(view.Missing(records), table.Notes...) {
			c.say(n)
		}
		return c.write(*path, func(w io.Writer) error { return write(w, records, table) })
	}
}

// overlooked returns the settings of -ignore; an empty value has none.
func overlooked(list string) ([]string, error) {
	if list == "" {
		return nil, nil
	}
	names := strings.Split(list, ",")
	return names, load.CheckIgnored(names)
}
