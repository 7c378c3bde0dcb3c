package view

import (
	"fmt"
	"math"

	"kvbench/kvbench/units"
	"kvbench/tools/stats"
)

// dash stands for what nobody measured; not a 0, which would enter a mean.
var dash = Cell{Text: units.Unknown, Class: "num muted"}

// Median is what a run measured of a metric, with its interval and the number of trials. An
// interval needs six trials; with fewer the cell says so instead of showing one that is not there.
func Median(c stats.Cell, unit string) Cell {
	if c.N() == 0 {
		return dash
	}
	sub := fmt.Sprintf("n=%d", c.N())
	if math.IsInf(c.Summary.Lo, 0) || math.IsInf(c.Summary.Hi, 0) {
		sub += ", too few for an interval"
	} else {
		sub = fmt.Sprintf("%s – %s, %s", stats.Format(c.Summary.Lo, unit),
			stats.Format(c.Summary.Hi, unit), sub)
	}
	return Cell{Text: stats.Format(c.Summary.Center, unit), Sub: sub, Class: "num"}
}

// Change says how a run differs from the first one and whether that is more than chance. A
// difference of 3 % that is chance and one that is not look the same in a bar.
func Change(c *stats.Change, m *stats.Metric) Cell {
	if c == nil {
		return dash
	}
	// What measured different things has no change, whatever the numbers.
	if c.Incomparable != "" {
		return Cell{Text: "not comparable", Sub: c.Incomparable, Class: "wrap muted"}
	}
	text := fmt.Sprintf("%+.1f %%", c.Ratio*100)
	if math.IsNaN(c.Ratio) || math.IsInf(c.Ratio, 0) {
		text = units.Unknown
	}
	sub := "p=" + stats.Number(c.P)
	if c.Headline {
		sub = "Holm p=" + stats.Number(c.Adjusted)
	}
	// With too few samples p is a number that means nothing.
	if len(c.Warnings) > 0 {
		sub = c.Warnings[0].Error()
	}
	// The sign says it twice, in form and in words: colours get lost in print and for some eyes.
	switch {
	case !c.Significant():
		return Cell{Text: "~ " + text, Sub: sub, Class: "num muted"}
	case c.Ratio*float64(m.Better) > 0:
		return Cell{Text: "▲ " + text + " better", Sub: sub, Class: "num better"}
	case c.Ratio*float64(m.Better) < 0:
		return Cell{Text: "▼ " + text + " worse", Sub: sub, Class: "num worse"}
	}
	return Cell{Text: "≠ " + text, Sub: sub, Class: "num"}
}
