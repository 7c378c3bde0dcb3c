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
func Bytes(n any) string { return Value(units.Bytes, n).Text }
func Rate(v any) string  { return Value(units.BytesPerSec, v).Text }
