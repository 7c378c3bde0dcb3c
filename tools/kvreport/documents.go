package main

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"kvbench/tools/load"
	"kvbench/tools/stats"
	"kvbench/tools/view"
	"kvbench/tools/view/html"
	"kvbench/tools/view/xlsx"
)

// runJSON writes all results as one file, which the other commands read. It reads all inputs before it
// writes. With -format python it writes the results one after the other, with the keys of the Python
// benchmark.
func runJSON(c *Call) func([]string) error {
	out := c.String("o", "", "")
	format := c.String("format", "kvbench", "")
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

// runCSV writes the columns of the workbook's sheet Summary as CSV, one row per trial. Messages go to
// standard error.
func runCSV(c *Call) func([]string) error {
	out := c.String("o", "", "")
	return func(in []string) error {
		records, _, err := load.All(in, load.Options{Stdin: c.stdin, Warn: c.warn,
			Trials: true})
		if err != nil {
			return err
		}
		// Say why cells are empty.
		for _, n := range view.Missing(records) {
			c.say(n)
		}
		// The columns are the same for all results, so that programs find them by name and tables can be
		// concatenated.
		heads, rows := xlsx.Summary(records)
		return c.write(*out, func(w io.Writer) error { return writeCSV(w, heads, rows) })
	}
}

// writeCSV writes a table.
func writeCSV(w io.Writer, heads []string, rows [][]any) error {
	out := csv.NewWriter(w)
	_ = out.Write(heads) // Error returns the error
	for _, row := range rows {
		cells := make([]string, len(row))
		for i, v := range row {
			cells[i] = csvCell(v)
		}
		_ = out.Write(cells)
	}
	out.Flush()
	return out.Error()
}

// csvCell formats a cell. Numbers have all digits, and a dot in every locale.
func csvCell(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	case time.Time: // with the zone
		return v.Format(time.RFC3339Nano)
	}
	// A text that a spreadsheet would run as a formula gets an apostrophe: names in results may be
	// hostile.
	text := fmt.Sprint(v)
	_, err := strconv.ParseFloat(text, 64)
	if err != nil && strings.IndexAny(text, "=+-@\t\r") == 0 {
		return "'" + text
	}
	return text
}

// runHTML writes all results as a page.
func runHTML(c *Call) func([]string) error { return document(c, html.Write) }

// runXLSX writes all results as a workbook.
func runXLSX(c *Call) func([]string) error { return document(c, xlsx.Write) }

// document returns a command that writes all results as one file. It warns of bad lines and missing
// data on standard error. An input that cannot be read is an error, because no reader would notice that it
// is missing.
func document(c *Call, write func(io.Writer, []*load.Record, *stats.Table, []load.Engine) error,
) func([]string) error {
	path := c.String("o", "", "")
	ignore := c.String("ignore", "", "")
	return func(in []string) error {
		// A page on standard output would fill the terminal when -o is forgotten.
		if *path == "" {
			return errors.New("no output; give -o FILE")
		}
		var engines []load.Engine
		records, table, err := c.compare(in, *ignore, &engines)
		if err != nil {
			return err
		}
		return c.write(*path, func(w io.Writer) error { return write(w, records, table, engines) })
	}
}

// compare reads the runs and compares them. It says what is missing, which documents list, too. engines
// gets the results of other programs; nil refuses them.
func (c *Call) compare(in []string, ignore string, engines *[]load.Engine,
) ([]*load.Record, *stats.Table, error) {
	ignored, err := overlooked(ignore)
	if err != nil {
		return nil, nil, err
	}
	records, units, err := load.All(in, load.Options{Stdin: c.stdin, Warn: c.warn, Trials: true,
		Engines: engines})
	if err != nil {
		return nil, nil, err
	}
	if len(records) == 0 {
		return nil, nil, errors.New("no result of kvbench in it; name one to show next to the others")
	}
	table := stats.Build(records, units, ignored...)
	for _, run := range table.Runs {
		if !slices.ContainsFunc(records, func(r *load.Record) bool { return r.Source == run && r.Known() }) {
			return nil, nil, fmt.Errorf("%s: no result of kvbench or of the Python benchmark in it; give the "+
				"whole output of a run, or its results directory", run)
		}
	}
	for _, n := range append(view.Missing(records), table.Notes...) {
		c.say(n)
	}
	return records, table, nil
}

// runQuote prints what may be quoted of one run, or which of two runs is faster. The exit code is 3 if no
// row has an answer.
func runQuote(c *Call) func([]string) error {
	format := c.String("format", "text", "")
	ignore := c.String("ignore", "", "")
	return func(in []string) error {
		form := map[string]func(view.Quote) string{"text": view.Quote.Text,
			"markdown": view.Quote.Markdown}[*format]
		switch {
		case len(in) > 2:
			return fmt.Errorf("%d inputs; give one, or two to compare", len(in))
		case form == nil:
			return fmt.Errorf("-format %s: it is text or markdown", *format)
		}
		records, table, err := c.compare(in, *ignore, nil)
		if err != nil {
			return err
		}
		q := view.NewQuote(records, table)
		if err := c.writeText("", form(q)); err != nil {
			return err
		}
		if !q.Decided {
			return errUndecided
		}
		return nil
	}
}

// overlooked returns the settings in the value of -ignore.
func overlooked(list string) ([]string, error) {
	if list == "" {
		return nil, nil
	}
	names := strings.Split(list, ",")
	return names, load.CheckIgnored(names)
}
