package report

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"kvbench/kvbench/units"
)

// Table is a part of a result in rows and columns. Cells are values, so that text, page and
// workbook draw a table each in its own way; see [units.Float] for what they may be.
type Table struct {
	Topic   string   // in the margin of the text; empty: it continues the one before
	Title   string   // on the page
	Sheet   string   // in the workbook
	Words   []string // of the page; the text has its own
	Note    string
	Folded  bool // on the page: it is long
	Columns []Column
	Rows    [][]any
}

// Column is one cell of each row, with its name in each document. A column without a name is not in
// that document, and a blank name is a column without a title. A column of one document only is one
// that the others have in words, or that only readers of numbers need. A unit stands with every
// value and not in the heading: 900 ms and 1.20 s are easier to compare than 0.900 and 1.200 s.
// Sizes and rates of bytes, which are added up and compared, have one unit in a table. In the
// workbook values are bare, and names have the units.
type Column struct {
	Text, Page, Sheet string
	Unit              units.Unit
}

// Draw makes the names of one document's columns and the cells below them.
func Draw[C any](t Table, name func(Column) string, cell func(units.Unit, any) C) (heads []string,
	rows [][]C) {
	rows = make([][]C, len(t.Rows))
	for i, c := range t.Columns {
		if name(c) == "" {
			continue
		}
		heads = append(heads, strings.TrimSpace(name(c)))
		for k, row := range t.Rows {
			rows[k] = append(rows[k], cell(c.Unit, row[i]))
		}
	}
	return heads, rows
}

// head makes columns of the text: a unit holds for the names after it. Most tables have a few units
// for many columns, which stand in groups. The first column names its row.
func head(first string, others ...any) []Column {
	all := []Column{{Text: first + " "}}
	unit := units.Number
	for _, v := range others {
		if u, ok := v.(units.Unit); ok {
			unit = u
		} else {
			all = append(all, Column{Text: v.(string), Unit: unit})
		}
	}
	return all
}

// both is a column with one name in the text and on the page.
func both(name string, unit units.Unit) Column {
	return Column{Text: name, Page: name, Unit: unit}
}

// add appends a row, with a cell for each column. A text in a column of numbers stays as it is.
func (t *Table) add(row ...any) { t.Rows = append(t.Rows, row) }

// some adds a row of what was counted, unless there is none of it.
func (t *Table) some(name string, n int64, others ...any) {
	if n > 0 {
		t.add(append([]any{name, n}, others...)...)
	}
}

// trim removes columns, from one on, in which every row is zero: activities that the load does not
// have. An unknown value is no zero.
func (t *Table) trim(from int) {
	for c := len(t.Columns) - 1; c >= from; c-- {
		some := func(row []any) bool { return row[c] != int64(0) }
		if slices.ContainsFunc(t.Rows, some) {
			continue
		}
		t.drop(c)
	}
}

// drop removes a column.
func (t *Table) drop(c int) {
	t.Columns = slices.Delete(t.Columns, c, c+1)
	for i := range t.Rows {
		t.Rows[i] = slices.Delete(t.Rows[i], c, c+1)
	}
}

// String draws the table below its heading, each column as wide as its widest cell. A table without
// rows is left out. The first column names rows and reads from the left, the others from the right.
func (t Table) String() string {
	if len(t.Rows) == 0 {
		return ""
	}
	// Bytes are compared within the table: all of a table have one unit, and so
	// have its rates.
	values := map[units.Unit][]any{}
	_, _ = Draw(t, func(c Column) string { return c.Text }, func(u units.Unit, v any) bool {
		values[u] = append(values[u], v)
		return true
	})
	format := map[units.Unit]func(any) string{}
	for u, list := range values {
		format[u] = u.InOneUnit(list...)
	}
	heads, rows := Draw(t, func(c Column) string { return c.Text },
		func(u units.Unit, v any) string { return format[u](v) })
	lines := append([][]string{heads}, rows...)
	widths := make([]int, len(heads))
	for _, cells := range lines {
		for i, c := range cells {
			widths[i] = max(widths[i], utf8.RuneCountInString(c))
		}
	}
	// The topic stands in the margin of the first line alone.
	topic := t.Topic
	var b strings.Builder
	for _, cells := range lines {
		line := fmt.Sprintf("%-11s %-*s", topic, widths[0], cells[0])
		for i, c := range cells[1:] {
			line += fmt.Sprintf("  %*s", widths[i+1], c)
		}
		fmt.Fprintln(&b, strings.TrimRight(line, " "))
		topic = ""
	}
	return b.String()
}

// joined are lines for a document without a margin: the topic is the first word.
func joined(lines [][2]string) (list []string) {
	for _, line := range lines {
		list = append(list, strings.TrimSpace(line[0]+" "+line[1]))
	}
	return list
}

// sentences are joined lines for the page.
func sentences(lines [][2]string) []string {
	list := joined(lines)
	for i := range list {
		list[i] += "."
	}
	return list
}
