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
// file: it reads everything, warns of bad lines and of what is missing on stderr, and writes the
// file whole or not at all. A bad line in one of many inputs must not cost the page; an input that
// cannot be read must, because its absence would not be noticed.
func document(c *Call, write func(io.Writer, []*load.Record, *stats.Table) error,
) func([]string) error {
	path := c.String("o", "", "file to write")
	ignore := c.String("ignore", "", "settings in which trials of one row may differ")
	return func(in []string) error {
		ignored, err := overlooked(*ignore)
		if err != nil {
			return err
		}
		// A page on standard output would fill the terminal when -o was forgotten.
		if *path == "" {
			return errors.New("no output; give -o FILE")
		}
		records, units, err := load.All(in, load.Options{Stdin: c.stdin, Warn: c.warn,
			Trials: true})
		if err != nil {
			return err
		}
		// What a document lacks is said twice: here, and in it.
		table := stats.Build(records, units, ignored...)
		for _, n := range append(view.Missing(records), table.Notes...) {
			c.say(n)
		}
		return c.write(*path, func(w io.Writer) error { return write(w, records, table) })
	}
}

// overlooked are the settings of -ignore: nothing to ignore is no name, and not an empty one.
func overlooked(list string) ([]string, error) {
	if list == "" {
		return nil, nil
	}
	names := strings.Split(list, ",")
	return names, load.CheckIgnored(names)
}
