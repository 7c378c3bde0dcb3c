package report

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"unicode/utf8"

	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
)

// Table is a part of a result in rows and columns. Cells are values, so that a page or a workbook
// can draw a table in its own way; see [units.Unit.Text] for what they may be.
type Table struct {
	Topic   string // empty: it continues the one before
	Columns []Column
	Rows    [][]any
}

// Column is what one cell of each row is. That of the first column names its row.
type Column struct {
	Name string
	Unit units.Unit
}

// How values read in a sentence.
var (
	number, count, bytes = units.Number.Text, units.Count.Text, units.Bytes.Text
	rate, ns, percent    = units.BytesPerSec.Text, units.Nanoseconds.Text, units.Percent
)

// Tables are those of the summary, in its order, without the empty ones. What a table shows is
// decided in one place for all who draw it.
func Tables(r *result.Result) []Table {
	all := []Table{rounds(r), sizes(r)}
	all = append(all, latencies(r)...)
	all = append(all, bySize(r), reads(r), contexts(r), tiers(r), blocksOverTime(r), checks(r),
		load(r))
	with := all[:0]
	for _, t := range all {
		if len(t.Rows) > 0 {
			with = append(with, t)
		}
	}
	return with
}

// head makes columns: a unit holds for the names after it.
func head(first string, others ...any) []Column {
	all := []Column{{Name: first}}
	unit := units.Number
	for _, v := range others {
		if u, ok := v.(units.Unit); ok {
			unit = u
		} else {
			all = append(all, Column{v.(string), unit})
		}
	}
	return all
}

// add appends a row, with a cell for each column.
func (t *Table) add(row ...any) { t.Rows = append(t.Rows, row) }

// write draws the table below its heading, each column as wide as its widest cell. A table without
// rows is left out.
func (t Table) write(w io.Writer) {
	if len(t.Rows) == 0 {
		return
	}
	width := 0
	labels, lines := make([]string, 0, len(t.Rows)+1), make([]string, 0, len(t.Rows)+1)
	add := func(cells []string) {
		width = max(width, utf8.RuneCountInString(cells[0]))
		labels = append(labels, cells[0])
		// a tab after every cell aligns it
		lines = append(lines, strings.Join(cells[1:], "\t")+"\t")
	}
	cells := make([]string, len(t.Columns))
	for i, c := range t.Columns {
		cells[i] = c.Name
	}
	add(cells)
	for _, row := range t.Rows {
		for i, v := range row {
			cells[i] = t.Columns[i].Unit.Text(v)
		}
		add(cells)
	}
	var b strings.Builder
	aligned := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(aligned, strings.Join(lines, "\n"))
	_ = aligned.Flush() // to a strings.Builder
	topic := t.Topic
	for i, l := range strings.Split(strings.TrimRight(b.String(), "\n"), "\n") {
		label := labels[i] + strings.Repeat(" ", width-utf8.RuneCountInString(labels[i]))
		fmt.Fprintln(w, strings.TrimRight(fmt.Sprintf("%-11s %s%s", topic, label, l), " "))
		topic = ""
	}
}
