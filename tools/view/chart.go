package view

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/floats"

	"kvbench/kvbench/units"
	"kvbench/tools/stats"
)

// Chart is a line chart. The page's script draws its JSON. The workbook draws a native chart, which has
// no heat map, marks or steps. A colour is an index into the palette of the document.
type Chart struct {
	Title string `json:"title"`
	X     Axis   `json:"x"`
	Y     Axis   `json:"y"`
	Heat  *Heat  `json:"heat,omitempty"` // behind the lines; not in native charts
	Lines []Line `json:"series"`
	Marks []Mark `json:"marks,omitempty"` // only on the page
	Time  bool   `json:"time,omitempty"`  // X is the time in the window: such charts zoom together
}

// Axis is one axis, in the unit of the data. A logarithmic axis shows no value of 0 or less.
type Axis struct {
	Label string `json:"label"` // with the unit
	Log   bool   `json:"log,omitempty"`
	Ticks []Tick `json:"ticks,omitempty"` // instead of computed ticks
	Zero  bool   `json:"zero,omitempty"`  // begin at 0
	Range Values `json:"range,omitempty"` // the two ends, instead of a fitted range
}

// Shows reports whether the axis can show a value.
func (a Axis) Shows(v float64) bool {
	return !math.IsNaN(v) && !math.IsInf(v, 0) && (!a.Log || v > 0)
}

// Tick is a labelled position.
type Tick struct {
	At    float64
	Label string
}

// Values are coordinates. A value that is not finite is a gap.
type Values []float64

// MarshalJSON writes values with six digits, more than a screen shows, and a gap as null.
func (v Values) MarshalJSON() ([]byte, error) {
	out := []byte("[")
	for i, x := range v {
		if i > 0 {
			out = append(out, ',')
		}
		if math.IsNaN(x) || math.IsInf(x, 0) {
			out = append(out, "null"...)
		} else {
			out = strconv.AppendFloat(out, x, 'g', 6, 64)
		}
	}
	return append(out, ']'), nil
}

// Colours is the number of colours for series. More runs share colours and differ by their numbers.
const Colours = 12

// dashes is the number of dashes: solid, dashed and dotted.
const dashes = 3

// Line is a series of points sorted by X.
type Line struct {
	Name   string `json:"name"`
	Run    int    `json:"run,omitempty"`  // from 1; 0 with one run
	Colour int    `json:"colour"`         // below Colours
	Dash   int    `json:"dash,omitempty"` // 0 solid, 1 dashed, 2 dotted
	Dots   bool   `json:"dots,omitempty"`
	Step   bool   `json:"step,omitempty"` // a value holds until the next point
	X      Values `json:"x,omitempty"`
	Y      Values `json:"y"`
	Low    Values `json:"low,omitempty"` // the band behind the line: only on the page
	High   Values `json:"high,omitempty"`

	point string // what a point is, for the title of the chart
}

// Heat has counts of values over time. Columns are intervals of the X axis, which begins at 0. Rows are
// intervals of the logarithmic Y axis.
type Heat struct {
	Colour int       `json:"colour"`
	At     Values    `json:"at"`     // ends of columns
	From   Values    `json:"from"`   // beginnings of rows, each a half octave high
	Counts [][]int64 `json:"counts"` // by column and row
}

// Mark is a vertical line with a text.
type Mark struct {
	X    float64
	Text string
}

// add appends a point.
func (l *Line) add(x, y float64) { l.X, l.Y = append(l.X, x), append(l.Y, y) }

// hold appends a value for an interval that begins at the last point (at 0 for the first) and ends at
// end.
func (l *Line) hold(y, end float64) {
	if l.Step = true; len(l.X) == 0 {
		l.add(0, y)
	}
	l.Y[len(l.Y)-1] = y
	l.add(end, y)
}

// add appends the lines of a run that have a value to show. With one run each line has its own colour.
// With several runs the colour is the run and the dash is the line. Dashes also read in print.
func (c *Chart) add(t *stats.Table, run int, lines ...Line) {
	for i, l := range lines {
		l.Colour = i % Colours
		if len(t.Runs) > 1 {
			l.Name = t.Labels[run] + " " + l.Name
			l.Run, l.Colour, l.Dash = run+1, run%Colours, i%dashes
		}
		if c.shows(l) {
			c.Lines = append(c.Lines, l)
		}
	}
}

// shows reports whether the chart can show a point of the line.
func (c *Chart) shows(l Line) bool {
	for i, y := range l.Y {
		if c.X.Shows(l.X[i]) && c.Y.Shows(y) {
			return true
		}
	}
	return false
}

// inBytes replaces %s in the label of the Y axis by the binary unit of the largest value, and scales all
// lines to it.
func (c *Chart) inBytes() {
	if !strings.Contains(c.Y.Label, "%s") {
		return
	}
	most := 1.0
	for _, l := range c.Lines {
		for _, v := range slices.Concat(l.Y, l.High) {
			if v > most { // false for a gap (NaN)
				most = v
			}
		}
	}
	thousands := min(max(1, int(math.Log2(most)/10)), 4)
	for _, l := range c.Lines {
		for _, values := range []Values{l.Y, l.Low, l.High} {
			floats.Scale(math.Ldexp(1, -10*thousands), values)
		}
	}
	c.Y.Label = fmt.Sprintf(c.Y.Label, []string{"B", "KiB", "MiB", "GiB", "TiB"}[thousands])
}

// shown returns the charts that have values: empty axes look like a measurement of nothing. If simulated
// is true, each title says so, because a chart may be copied without the page.
func shown(simulated bool, charts ...Chart) (list []Chart) {
	for _, c := range charts {
		if c.Heat == nil && !slices.ContainsFunc(c.Lines, c.shows) {
			continue
		}
		if simulated {
			c.Title = "SIMULATED: " + c.Title
		}
		list = append(list, c)
	}
	return list
}

// Numbers is a chart as a table. It has a row per position on the X axis (per tick if the axis has
// ticks), and a column per line and per row of a heat map. It includes values that an axis cannot show.
type Numbers struct {
	Places []float64 // on the X axis
	Labels []string  // of the places, if there are ticks
	Series []Line    // with one Y per place, NaN if the line has no value there
}

// Numbers returns the chart as a table.
func (c Chart) Numbers() (n Numbers) {
	n.Series = slices.Clone(c.Lines)
	if h := c.Heat; h != nil {
		for k, low := range h.From {
			l := Line{Name: "how often from " + units.Number.Text(low),
				X: append(Values{0}, h.At[:len(h.At)-1]...)}
			for i := range h.At {
				l.Y = append(l.Y, float64(h.Counts[i][k]))
			}
			n.Series = append(n.Series, l)
		}
	}
	for _, l := range n.Series {
		n.Places = append(n.Places, l.X...)
	}
	slices.Sort(n.Places)
	n.Places = slices.Compact(n.Places)
	if len(c.X.Ticks) > 0 {
		labels := map[float64]string{}
		for _, t := range c.X.Ticks {
			labels[t.At] = t.Label
		}
		n.Places = slices.DeleteFunc(n.Places, func(x float64) bool { return labels[x] == "" })
		for _, x := range n.Places {
			n.Labels = append(n.Labels, labels[x])
		}
	}
	for i, l := range n.Series {
		known, values := map[float64]float64{}, make(Values, len(n.Places))
		for k, x := range l.X {
			known[x] = l.Y[k]
		}
		for k, x := range n.Places {
			y, ok := known[x]
			if !ok {
				y = math.NaN()
			}
			values[k] = y
		}
		n.Series[i].Name, n.Series[i].Y = cmp.Or(l.Name, c.Y.Label), values
	}
	return n
}
