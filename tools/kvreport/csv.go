package main

import (
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"kvbench/tools/load"
	"kvbench/tools/view"
	"kvbench/tools/view/xlsx"
)

// runCSV writes the columns of the workbook's first sheet for programs: a trial is a row, the ranks
// of a trial are one. Standard output may be a pipe, so messages go to standard error, as for every
// command that writes a document.
func runCSV(c *Call) func([]string) error {
	out := c.String("o", "", "file to write; without it standard output")
	return func(in []string) error {
		records, _, err := load.All(in, load.Options{Stdin: c.stdin, Warn: c.warn,
			Trials: true})
		if err != nil {
			return err
		}
		// Empty cells do not say why they are empty.
		for _, n := range view.Missing(records) {
			c.say(n)
		}
		return c.write(*out, func(w io.Writer) error { return writeCSV(w, records) })
	}
}

// writeCSV writes one head for all rows, whatever a result lacks: programs find columns by it, and
// tables can be concatenated.
func writeCSV(w io.Writer, records []*load.Record) error {
	// The workbook's sheet: the table is defined in one place.
	heads, rows := xlsx.Summary(records)
	out := csv.NewWriter(w)
	if err := out.Write(heads); err != nil {
		return err
	}
	for _, row := range rows {
		cells := make([]string, len(row))
		for i, v := range row {
			cells[i] = csvCell(v)
		}
		if err := out.Write(cells); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

// csvCell writes numbers with all digits in the notation of programming languages, independent of
// the locale.
func csvCell(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	case time.Time: // with the zone, which a spreadsheet's time lacks
		return v.Format(time.RFC3339Nano)
	}
	// Results of others contain names: a text like a formula must not run in a spreadsheet.
	text := fmt.Sprint(v)
	_, err := strconv.ParseFloat(text, 64)
	if err != nil && strings.IndexAny(text, "=+-@\t\r") == 0 {
		return "'" + text
	}
	return text
}
