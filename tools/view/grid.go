package view

import (
	"strings"

	"kvbench/tools/stats"
)

// Grid is a table for people.
type Grid struct {
	Head []string
	Rows [][]Cell
	Note string
}

// Cell is one text of it. The class says how it is set: num, muted, better, worse, first, wrap.
type Cell struct {
	Text, Class string
	Sub         string // second line, small
}

// Heads are the cells of the header, aligned as what stands below.
func (g Grid) Heads() []Cell {
	out := make([]Cell, len(g.Head))
	for i, h := range g.Head {
		out[i].Text = h
		for _, row := range g.Rows {
			if i < len(row) && strings.HasPrefix(row[i].Class, "num") {
				out[i].Class = "num"
			}
		}
	}
	return out
}

// add appends a row that has a number in it; a run without what the table is about has no row.
func (g *Grid) add(row []Cell) {
	for _, c := range row {
		if c.Class == "num" {
			g.Rows = append(g.Rows, row)
			return
		}
	}
}

func num(text string) Cell { return Cell{Text: text, Class: "num"} }

func bytes(n int64) string { return stats.Binary(float64(n)) }

func percent(v float64) string { return stats.Number(v*100) + " %" }

// known formats what may be unknown.
func known(v *float64, format func(float64) string) string {
	if v == nil {
		return "–"
	}
	return format(*v)
}
