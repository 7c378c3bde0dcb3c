package view

import (
	"kvbench/kvbench/report"
	"kvbench/kvbench/units"
	"kvbench/tools/stats"
)

// Part is a table of what only some results have, as the page draws it. It has no grid where the
// page says all of it in words.
type Part struct {
	report.Table
	Grid *Grid
}

// parts are those of the median trial of each run.
func parts(typical []trial, t *stats.Table) (out []Part) {
	for _, k := range typical {
		for _, p := range report.Tables(k.Result) {
			if len(t.Runs) > 1 {
				p.Title += ", " + t.Labels[k.run]
			}
			part := Part{Table: p}
			heads, rows := report.Draw(p, func(c report.Column) string { return c.Page }, cell)
			if len(heads) > 0 && len(rows) > 0 {
				part.Grid = &Grid{Head: heads, Rows: rows, Note: p.Note}
			}
			out = append(out, part)
		}
	}
	return out
}

// judged are the classes of judgements: they are coloured, and say themselves in words.
var judged = map[any]string{"pass": "better", "fail": "worse"}

// cell is a value on the page, set to the right where it is a number, known or not. It has the
// digits of package stats.
func cell(u units.Unit, v any) Cell {
	x, text, ok := units.Float(v)
	switch {
	case !ok && text == units.Unknown:
		return num(text)
	case !ok: // what is text stays text, whatever it looks like
		return Cell{Text: text, Class: judged[text]}
	}
	switch u {
	case units.Count, units.HitRatio:
		return num(u.Text(x))
	case units.Share:
		return num(stats.Number(x*100) + " %")
	case units.Milliseconds:
		return num(stats.Seconds(x / 1e3))
	case units.Nanoseconds:
		return num(stats.Seconds(x / 1e9))
	case units.Seconds:
		return num(stats.Seconds(x))
	case units.Bytes:
		return num(stats.Binary(x))
	case units.BytesPerSec:
		return num(stats.Binary(x) + "/s")
	}
	return num(stats.Number(x))
}

// Bytes and Rate are sizes in a sentence, and in a table that the page lays out itself.
func Bytes(n any) string { return cell(units.Bytes, n).Text }
func Rate(v any) string  { return cell(units.BytesPerSec, v).Text }
