package view

import (
	"fmt"
	"math"
	"strings"

	"kvbench/kvbench/report"
	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
	"kvbench/tools/stats"
)

// Cell is one text of a table. The class says how it is set: num, muted, better, worse, wrap.
type Cell struct {
	Text, Class string
	Sub         string   // second line, small
	Key         *float64 // what rows are sorted by: the value; nil where there is none, or a text
}

// num is a right-aligned cell.
func num(text string) Cell { return Cell{Text: text, Class: "num"} }

// judged are the classes of judgements, which are coloured and have words.
var judged = map[any]string{"pass": "better", "fail": "worse"}

// Value is a value on the page, right-aligned if it is a number, known or not.
func Value(u units.Unit, v any) Cell {
	x, text, ok := units.Float(v)
	if !ok && text != units.Unknown { // what is text stays text, whatever it looks like
		return Cell{Text: text, Class: judged[text]}
	}
	c := num(u.Text(v))
	if ok {
		c.Key = new(x)
	}
	return c
}

// Bytes is a size in a sentence.
func Bytes(n any) string { return Value(units.Bytes, n).Text }

// dash stands for an unknown number; not a 0, which would enter a mean.
var dash = Cell{Text: units.Unknown, Class: "num muted"}

// Median is a run's median of a metric, with its interval and the number of trials, in one unit
// with the other runs of the row. An interval needs six trials; with fewer the cell says so.
func Median(c stats.Cell, unit string, row []stats.Cell) Cell {
	if c.N() == 0 {
		return dash
	}
	var together []any
	for _, other := range row {
		if other.N() > 0 {
			together = append(together, other.Summary.Center)
		}
	}
	text := units.OfLine(unit, together...)
	sub := fmt.Sprintf("n=%d", c.N())
	if math.IsInf(c.Summary.Lo, 0) || math.IsInf(c.Summary.Hi, 0) {
		sub += ", too few for an interval"
	} else {
		sub = fmt.Sprintf("%s – %s, %s", text(c.Summary.Lo),
			text(c.Summary.Hi), sub)
	}
	return Cell{Text: text(c.Summary.Center), Sub: sub, Class: "num",
		Key: new(c.Summary.Center)}
}

// Change is a run's difference from the first one and its significance. A random difference of 3 %
// and a significant one look the same in a bar.
func Change(b *stats.Benchmark, m *stats.Metric, run int) Cell {
	c := m.Cells[run].Change
	if c == nil {
		return dash
	}
	text, key := units.Change(c.Ratio), units.Finite(c.Ratio)
	sub := "p=" + units.Number.Text(c.Adjusted)
	if c.Headline {
		sub = "Holm " + sub
	} else {
		sub += " alone, not judged"
	}
	// With too few samples p means nothing.
	if c.TooFew != "" {
		sub = c.TooFew
	}
	// The sign repeats the colour as a shape: colours get lost in print and for some readers.
	switch {
	case c.Headline && !Comparable(b, run):
		return Cell{text, "num muted", "mostly not " + result.StorageLimited, key}
	case !c.Headline:
		return Cell{text, "num muted", sub, key}
	case c.Judged(stats.Alpha) == 0:
		return Cell{"~ " + text, "num muted", sub, key}
	case c.Judged(stats.Alpha) == m.Better:
		return Cell{"▲ " + text + " better", "num better", sub, key}
	case c.Judged(stats.Alpha) == -m.Better:
		return Cell{"▼ " + text + " worse", "num worse", sub, key}
	}
	return Cell{"≠ " + text, "num", sub, key}
}

// Heads are the cells of a table's header, aligned like the column: to the right when any of its
// cells is a number. There are none where the page uses sentences.
func Heads(t report.Table) (heads []Cell) {
	for i, c := range t.Columns {
		if c.Page == "" || len(t.Rows) == 0 {
			continue
		}
		head := Cell{Text: strings.TrimSpace(c.Page)}
		for _, row := range t.Rows {
			if Value(c.Unit, row[i]).Class == "num" {
				head.Class = "num"
			}
		}
		heads = append(heads, head)
	}
	return heads
}
