package report

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"unicode/utf8"

	"kvbench/kvbench/units"
)

// table is a part of a result in rows and columns. Cells are values, so that a page or a workbook
// can draw a table in its own way; see [units.Unit.Text] for what they may be.
type table struct {
	Topic   string // empty: it continues the one before
	Columns []column
	Rows    [][]any
}

// column is what one cell of each row is. That of the first column names its row. A unit stands
// with every value and not in the heading: 900 ms and 1.20 s are easier to compare than 0.900 and
// 1.200 s.
type column struct {
	Name string
	Unit units.Unit
}

// How values read in a sentence.
var (
	number, count, bytes = units.Number.Text, units.Count.Text, units.Bytes.Text
	rate, ns, percent    = units.BytesPerSec.Text, units.Nanoseconds.Text, units.Percent
)

// head makes columns: a unit holds for the names after it. Most tables have a few units for many
// columns, which stand in groups.
func head(first string, others ...any) []column {
	all := []column{{Name: first}}
	unit := units.Number
	for _, v := range others {
		if u, ok := v.(units.Unit); ok {
			unit = u
		} else {
			all = append(all, column{v.(string), unit})
		}
	}
	return all
}

// add appends a row, with a cell for each column. A text in a column of numbers stays as it is.
func (t *table) add(row ...any) { t.Rows = append(t.Rows, row) }

// write draws the table below its heading, each column as wide as its widest cell. A table without
// rows is left out. The first column is aligned by hand, because it names rows and reads from the
// left, while a tabwriter aligns all cells alike.
func (t table) write(w io.Writer) {
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
	// The topic stands in the margin of the first line alone.
	topic := t.Topic
	for i, l := range strings.Split(strings.TrimRight(b.String(), "\n"), "\n") {
		label := labels[i] + strings.Repeat(" ", width-utf8.RuneCountInString(labels[i]))
		fmt.Fprintln(w, strings.TrimRight(fmt.Sprintf("%-11s %s%s", topic, label, l), " "))
		topic = ""
	}
}
