package view

import (
	"cmp"
	"fmt"
	"math"
	"strings"

	"kvbench/kvbench/report"
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

// Change returns a run's median ÷ the first run's, with the interval and the p value. Only the p value
// distinguishes a random change of 3 % from a significant one. A row that may not be compared has no
// ratio, because readers quote it.
func Change(m *stats.Metric, run int) Cell {
	c := m.Cells[run].Change
	switch {
	case c == nil:
		return dash
	case !c.Headline:
		return Cell{Text: ratio(c), Class: "num muted", Key: units.Finite(c.Ratio), Sub: "not judged"}
	case c.Unjudged == stats.NotLimited:
		return Cell{Text: "not compared", Class: "num muted", Sub: c.Unjudged}
	}
	cell := Cell{Text: "~ " + ratio(c), Class: "num muted", Key: units.Finite(c.Ratio),
		Sub: cmp.Or(c.Unjudged, interval(c)+", Holm p="+units.Number.Text(c.Adjusted))}
	// The sign repeats the colour, for print and for colour-blind readers.
	switch compared := c.Judged(stats.Alpha); {
	case compared == 0:
	case compared == m.Better:
		cell.Text, cell.Class = "▲ "+ratio(c)+" better", "num better"
	case compared == -m.Better:
		cell.Text, cell.Class = "▼ "+ratio(c)+" worse", "num worse"
	default:
		cell.Text, cell.Class = "≠ "+ratio(c), "num"
	}
	return cell
}

// interval returns the interval of the ratio, or that it is unknown.
func interval(c *stats.Change) string {
	lo, hi := c.Interval()
	if math.IsInf(hi-lo, 0) {
		return units.Unknown
	}
	return strings.TrimSuffix(times(lo), "×") + "–" + times(hi)
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
