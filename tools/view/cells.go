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
	Run         int      // from 1; 0 where it is no single run's
}

// Of is the cell of a run.
func (c Cell) Of(run int) Cell {
	c.Run = run + 1
	return c
}

// judged are the classes of judgements, which are coloured and have words.
var judged = map[any]string{"pass": "better", "fail": "worse"}

// Value is a value on the page, right-aligned if it is a number, known or not.
func Value(u units.Unit, v any) Cell {
	x, text, ok := units.Float(v)
	switch {
	case ok:
		text = u.Text(v)
	case text == units.Unknown:
		return dash
	default: // a text that looks like a number stays a text
		return Cell{Text: text, Class: judged[text]}
	}
	return Cell{Text: text, Class: "num", Key: new(x)}
}

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
	sign, word, class := "", "", "num muted"
	switch d := c.Judged(stats.Alpha); {
	case c.Headline && !Comparable(b, run):
		sub = "mostly not " + result.StorageLimited
	case !c.Headline:
	case d == 0:
		sign = "~ "
	case d == m.Better:
		sign, word, class = "▲ ", " better", "num better"
	case d == -m.Better:
		sign, word, class = "▼ ", " worse", "num worse"
	default:
		sign, class = "≠ ", "num"
	}
	return Cell{Text: sign + text + word, Class: class, Sub: sub, Key: key}
}

// Heads are the cells of a table's header, aligned like the column: to the right when any of its
// cells is a number.
func Heads(s report.Section) (heads []Cell) {
	for i, c := range s.Columns {
		head := Cell{Text: c.Name}
		for _, row := range s.Rows {
			if strings.HasPrefix(Value(c.Unit, row[i]).Class, "num") {
				head.Class = "num"
			}
		}
		heads = append(heads, head)
	}
	return heads
}
