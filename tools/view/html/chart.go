package html

import (
	"cmp"
	"math"
	"slices"
	"strconv"

	"kvbench/tools/stats"
	"kvbench/tools/view"
)

// newPlot leaves out the X of a series where it equals the one before.
func newPlot(c view.Chart) view.Chart {
	c.Lines = slices.Clone(c.Lines)
	for i := len(c.Lines) - 1; i > 0; i-- {
		if slices.Equal(c.Lines[i].X, c.Lines[i-1].X) {
			c.Lines[i].X = nil
		}
	}
	return c
}

// grid is a chart as a table, for readers without a script.
type grid struct {
	Heads []string
	Rows  [][]string
}

func newGrid(c view.Chart) grid {
	n := c.Numbers()
	g := grid{Heads: []string{c.X.Label}}
	for _, s := range n.Series {
		if s.Run > 0 { // as in the legend of the chart
			s.Name = strconv.Itoa(s.Run) + " " + s.Name
		}
		g.Heads = append(g.Heads, s.Name)
	}
	for i, x := range n.Places {
		row := []string{cmp.Or(n.Labels[i], stats.Number(x))}
		for _, s := range n.Series {
			text := ""
			if !math.IsNaN(s.Values[i]) {
				text = stats.Number(s.Values[i])
			}
			row = append(row, text)
		}
		g.Rows = append(g.Rows, row)
	}
	return g
}
