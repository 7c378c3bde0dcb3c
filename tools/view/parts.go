package view

import (
	"strings"

	"kvbench/kvbench/report"
	"kvbench/kvbench/units"
	"kvbench/tools/stats"
)

// parts are what only some results have, of the median trial of each run.
func parts(typical []trial, t *stats.Table) (out []report.Table) {
	for _, k := range typical {
		for _, p := range report.Tables(k.Result) {
			if len(t.Runs) > 1 {
				p.Title += ", " + t.Labels[k.run]
			}
			out = append(out, p)
		}
	}
	return out
}

// Heads are the cells of a table's header, aligned as what stands below: to the right when any of
// the column's cells is a number. There are none where the page says all of it in words.
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

// judged are the classes of judgements: they are coloured, and say themselves in words.
var judged = map[any]string{"pass": "better", "fail": "worse"}

// Value is a value on the page, set to the right where it is a number, known or not. It has the
// digits of package stats.
func Value(u units.Unit, v any) Cell {
	x, text, ok := units.Float(v)
	if !ok && text != units.Unknown { // what is text stays text, whatever it looks like
		return Cell{Text: text, Class: judged[text]}
	}
	s, known := scales[u]
	switch {
	case !ok, u == units.Count, u == units.HitRatio:
		return num(u.Text(v))
	case known:
		return num(stats.Format(x*s.by, s.unit))
	}
	return num(stats.Number(x))
}

// scales are the units of package stats.
var scales = map[units.Unit]struct {
	unit string
	by   float64
}{units.Nanoseconds: {"sec", 1e-9}, units.Milliseconds: {"sec", 1e-3}, units.Seconds: {"sec", 1},
	units.Bytes: {"B", 1}, units.BytesPerSec: {"B/s", 1}, units.Share: {"%", 100}}

// Bytes is a size in a sentence.
func Bytes(n any) string { return Value(units.Bytes, n).Text }
