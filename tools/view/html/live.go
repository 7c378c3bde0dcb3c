package html

import (
	"math"
	"slices"
	"strconv"

	"kvbench/tools/view"
)

// plot is what the script draws a chart from: the chart's numbers, and the ranges of its drawing.
type plot struct {
	Title string   `json:"title"`
	X     liveAxis `json:"x"`
	Y     liveAxis `json:"y"`
	Time  bool     `json:"time,omitempty"`
	Bars  bool     `json:"bars,omitempty"`
	// Series are lines, or bars over the categories 0, 1, 2, …
	Series []series    `json:"series"`
	Heat   *liveHeat   `json:"heat,omitempty"`
	Bands  []liveBand  `json:"bands,omitempty"`
	Marks  []view.Mark `json:"marks,omitempty"`
}

// liveAxis is an axis: its ends are those of the drawing, and given ticks stay.
type liveAxis struct {
	Label string      `json:"label"`
	Log   bool        `json:"log,omitempty"`
	Ends  [2]number   `json:"ends"`
	Ticks []view.Tick `json:"ticks,omitempty"`
}

// series is one of them. X is left out where it is that of the series before.
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

// liveBand is a band.
type liveBand struct {
	Run    int      `json:"run,omitempty"`
	Colour int      `json:"colour"`
	Step   bool     `json:"step,omitempty"`
	X      []number `json:"x"`
	Lo     []number `json:"lo"`
	Hi     []number `json:"hi"`
}

// liveHeat is a heat map; shades are from 0 to 9, one digit a row.
type liveHeat struct {
	Colour int       `json:"colour"`
	At     []number  `json:"at"`
	From   []number  `json:"from"`
	High   float64   `json:"high"` // end ÷ beginning of a row
	Counts [][]int64 `json:"counts"`
	Shades []string  `json:"shades"`
}

// newLiveHeat makes the script's view of a heat map.
func newLiveHeat(h *view.Heat) *liveHeat {
	out := &liveHeat{Colour: h.Colour % colours, At: numbers(h.At), From: numbers(h.From),
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

// live makes the script's view of a chart.
func live(c view.Chart) plot {
	x, y := scales(c)
	p := plot{Title: c.Title, Time: c.Time, Bars: len(c.Bars) > 0, Marks: c.Marks,
		X: liveAxis{c.X.Label, c.X.Log, x.ends(), c.X.Ticks},
		Y: liveAxis{c.Y.Label, c.Y.Log, y.ends(), c.Y.Ticks}}
	if c.Heat != nil {
		p.Heat = newLiveHeat(c.Heat)
	}
	for _, b := range c.Bands {
		p.Bands = append(p.Bands, liveBand{b.Run, b.Colour % colours, b.Step, numbers(b.X),
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
