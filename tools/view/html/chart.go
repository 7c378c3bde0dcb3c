package html

import (
	"cmp"
	"math"
	"slices"
	"strconv"

	"kvbench/tools/stats"
	"kvbench/tools/view"
)

// colours is how many series colours the page defines. More runs than that share them, and differ by
// their numbers.
const colours = 12

// plot is what the script draws a chart from. The script fits the ranges and finds the ticks.
type plot struct {
	Title string   `json:"title"`
	X     plotAxis `json:"x"`
	Y     plotAxis `json:"y"`
	Time  bool     `json:"time,omitempty"`
	Bars  bool     `json:"bars,omitempty"`
	// Series are lines, or bars over the categories 0, 1, 2, …
	Series []series    `json:"series"`
	Heat   *plotHeat   `json:"heat,omitempty"`
	Bands  []plotBand  `json:"bands,omitempty"`
	Marks  []view.Mark `json:"marks,omitempty"`
}

// plotAxis is an axis. With a range it is not fitted to the numbers, and given ticks stay.
type plotAxis struct {
	Label string      `json:"label"`
	Log   bool        `json:"log,omitempty"`
	Zero  bool        `json:"zero,omitempty"`
	Range []number    `json:"range,omitempty"`
	Ticks []view.Tick `json:"ticks,omitempty"`
}

func newAxis(a view.Axis) plotAxis {
	out := plotAxis{Label: a.Label, Log: a.Log, Zero: a.Zero, Ticks: a.Ticks}
	if a.Min != a.Max {
		out.Range = []number{number(a.Min), number(a.Max)}
	}
	return out
}

// series is a line or bars. X is left out where it equals the one before.
type series struct {
	Name   string   `json:"name"`
	Run    int      `json:"run,omitempty"`
	Colour int      `json:"colour"`
	Dash   int      `json:"dash,omitempty"`
	Dots   bool     `json:"dots,omitempty"`
	Step   bool     `json:"step,omitempty"`
	Apart  bool     `json:"apart,omitempty"`
	X      []number `json:"x,omitempty"`
	Y      []number `json:"y"`
}

// plotBand is the area between two lines.
type plotBand struct {
	Run    int      `json:"run,omitempty"`
	Colour int      `json:"colour"`
	Step   bool     `json:"step,omitempty"`
	X      []number `json:"x"`
	Lo     []number `json:"lo"`
	Hi     []number `json:"hi"`
}

// plotHeat is a heat map; shades are from 0 to 9, one digit a row.
type plotHeat struct {
	Colour int       `json:"colour"`
	At     []number  `json:"at"`
	From   []number  `json:"from"`
	High   float64   `json:"high"` // end ÷ beginning of a row
	Counts [][]int64 `json:"counts"`
	Shades []string  `json:"shades"`
}

func newHeat(h *view.Heat) *plotHeat {
	out := &plotHeat{Colour: h.Colour % colours, At: numbers(h.At), From: numbers(h.From),
		High: view.HalfOctave, Counts: h.Counts}
	for i, rows := range h.Shades() {
		digits := make([]byte, len(rows))
		for k, s := range rows {
			digits[k] = '0'
			if h.Counts[i][k] > 0 {
				digits[k] = '0' + byte(min(9, max(1, math.Ceil(9*s))))
			}
		}
		out.Shades = append(out.Shades, string(digits))
	}
	return out
}

// newPlot converts a chart for the script.
func newPlot(c view.Chart) plot {
	p := plot{Title: c.Title, Time: c.Time, Bars: len(c.Bars) > 0, Marks: c.Marks,
		X: newAxis(c.X), Y: newAxis(c.Y)}
	if c.Heat != nil {
		p.Heat = newHeat(c.Heat)
	}
	for _, b := range c.Bands {
		p.Bands = append(p.Bands, plotBand{b.Run, b.Colour % colours, b.Step, numbers(b.X),
			numbers(b.Lo), numbers(b.Hi)})
	}
	for _, b := range c.Bars {
		p.Series = append(p.Series, series{Name: b.Name, Run: b.Run, Colour: b.Colour % colours,
			Y: numbers(b.Y)})
	}
	for i, l := range c.Lines {
		s := series{l.Name, l.Run, l.Colour % colours, l.Dash % 3, l.Dots, l.Step, l.Apart,
			numbers(l.X), numbers(l.Y)}
		if i > 0 && slices.Equal(l.X, c.Lines[i-1].X) {
			s.X = nil
		}
		p.Series = append(p.Series, s)
	}
	return p
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

// number is a coordinate in JSON: with six digits, which are more than a screen has, and null where
// there is a gap.
type number float64

func numbers(values []float64) []number {
	out := make([]number, len(values))
	for i, v := range values {
		out[i] = number(v)
	}
	return out
}

// MarshalJSON writes the number.
func (n number) MarshalJSON() ([]byte, error) {
	v := float64(n)
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return []byte("null"), nil
	}
	return strconv.AppendFloat(nil, v, 'g', 6, 64), nil
}
