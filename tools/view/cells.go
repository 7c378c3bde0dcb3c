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

// Cell is a cell of a table. Class is its style: num, muted, better, worse, wrap.
type Cell struct {
	Text, Class string
	Sub         string   // second line, small
	Key         *float64 // the sort key; nil for a text or an unknown value
	Run         int      // from 1; 0 if the cell belongs to no single run
}

// InRun returns the cell with the number of the run whose index is run.
func (c Cell) InRun(run int) Cell {
	c.Run = run + 1
	return c
}

// judged maps a result of a check to its class.
var judged = map[any]string{"pass": "better", "fail": "worse"}

// Value returns the cell of a value. Numbers are right-aligned, and so is the dash of an unknown value.
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

// dash is the cell of an unknown number. A 0 would count as a measured value.
var dash = Cell{Text: units.Unknown, Class: "num muted"}

// Median returns a run's median of a metric, with the confidence interval and the number of trials. All cells
// of row get the same unit prefix. With fewer than six trials there is no interval, and the cell says so.
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

// Change returns the change of a run's median against the first run, with the p value. Only the p value
// distinguishes a random change of 3 % from a significant one.
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
	// With too few samples the p value means nothing.
	if c.TooFew != "" {
		sub = c.TooFew
	}
	// The sign repeats the colour, for print and for colour-blind readers.
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

// Heads returns the cells of a table's header. A head is right-aligned if its column has a number.
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
