package view

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"kvbench/kvbench/units"
	"kvbench/tools/stats"
)

// Chart is lines or bars in one pair of axes. Its JSON is drawn by the page's script; the workbook
// draws it as a native chart, without heat maps, marks and steps, and bands as dashed lines. A colour
// is an index that the drawing maps to a colour.
type Chart struct {
	Title string `json:"title"`
	X     Axis   `json:"x"`
	Y     Axis   `json:"y"`
	Heat  *Heat  `json:"heat,omitempty"`  // behind all of it; no native chart shows it
	Bands []Band `json:"bands,omitempty"` // behind the lines
	Lines []Line `json:"series"`
	Bars  bool   `json:"bars,omitempty"`  // Lines are bars over the categories 0, 1, 2, … of the X axis
	Marks []Mark `json:"marks,omitempty"` // of the page
	Time  bool   `json:"time,omitempty"`  // X is the time in the window: such charts zoom together
}

// Axis is one axis. Values have the unit of the data. On a logarithmic axis a value that is not
// positive is a gap.
type Axis struct {
	Label string `json:"label"` // with the unit
	Log   bool   `json:"log,omitempty"`
	Ticks []Tick `json:"ticks,omitempty"` // instead of computed ones
	Zero  bool   `json:"zero,omitempty"`  // begin at 0
	Range Values `json:"range,omitempty"` // instead of a fitted one: the two ends
}

// Shows reports whether the axis can show a value.
func (a Axis) Shows(v float64) bool {
	return !math.IsNaN(v) && !math.IsInf(v, 0) && (!a.Log || v > 0)
}

// Tick is a labelled position. A newline in the label begins a second line.
type Tick struct {
	At    float64
	Label string
}

// Values are coordinates. What is not a finite number is a gap.
type Values []float64

// MarshalJSON writes six digits, which are more than a screen has, and null for a gap.
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

// Colours is the number of series colours. More runs than that share them and differ by their numbers.
const Colours = 12

// Line is a series of points in the order of X, or of bars, which have no X.
type Line struct {
	Name   string `json:"name"`
	Run    int    `json:"run,omitempty"`  // from 1; 0 where there is one run
	Colour int    `json:"colour"`         // below Colours; the same for what belongs together
	Dash   int    `json:"dash,omitempty"` // 0 solid, 1 dashed, 2 dotted
	Dots   bool   `json:"dots,omitempty"`
	Step   bool   `json:"step,omitempty"`  // a value holds until the next point
	Apart  bool   `json:"apart,omitempty"` // points that no line joins: the X axis has categories
	X      Values `json:"x,omitempty"`
	Y      Values `json:"y"`
}

// Band is the area between the bounds of a line.
type Band struct {
	Name   string `json:"-"` // the line's
	Run    int    `json:"run,omitempty"`
	Colour int    `json:"colour"`
	Step   bool   `json:"step,omitempty"`
	X      Values `json:"x"`
	Lo     Values `json:"lo"`
	Hi     Values `json:"hi"`
}

// Heat counts values over time: rows of a logarithmic Y axis, columns of an X axis that begins at
// 0.
type Heat struct {
	Colour int       `json:"colour"`
	At     Values    `json:"at"`     // ends of columns
	From   Values    `json:"from"`   // beginnings of rows, each a half octave high
	Counts [][]int64 `json:"counts"` // by column and row
}

// add appends a point.
func (l *Line) add(x, y float64) { l.X, l.Y = append(l.X, x), append(l.Y, y) }

// hold appends a value that holds until the end of its interval, which begins at the end of the one
// before.
func (l *Line) hold(y, end float64) {
	if l.Step = true; len(l.X) == 0 {
		l.add(0, y)
	}
	l.Y[len(l.Y)-1] = y
	l.add(end, y)
}

// Numbers is a chart as a table: a row for each position on the X axis, of an axis with ticks for each
// tick, and a column for each line, bound of a band and row of a heat map. Values that an axis cannot
// show are in it.
type Numbers struct {
	Places []float64 // on the X axis
	Labels []string  // of the places, if there are ticks
	Series []Line    // with a Y for each place, NaN for none
}

// Numbers is the chart as a table.
func (c Chart) Numbers() (n Numbers) {
	n.Series = slices.Clone(c.Lines)
	for i := range n.Series {
		for k := range n.Series[i].Y {
			if c.Bars {
				n.Series[i].X = append(n.Series[i].X, float64(k))
			}
		}
	}
	for _, b := range c.Bands {
		bound := Line{Run: b.Run, Colour: b.Colour, Dash: 1, X: b.X}
		bound.Name, bound.Y = b.Name+", least of all trials", b.Lo
		n.Series = append(n.Series, bound)
		bound.Name, bound.Y = b.Name+", most of all trials", b.Hi
		n.Series = append(n.Series, bound)
	}
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
			labels[t.At] = strings.ReplaceAll(t.Label, "\n", " ")
		}
		n.Places = slices.DeleteFunc(n.Places, func(x float64) bool { return labels[x] == "" })
		for _, x := range n.Places {
			n.Labels = append(n.Labels, labels[x])
		}
	}
	for i, l := range n.Series {
		values := make(Values, len(n.Places))
		for k, x := range n.Places {
			values[k] = math.NaN()
			if at := slices.Index(l.X, x); at >= 0 {
				values[k] = l.Y[at]
			}
		}
		n.Series[i].Name, n.Series[i].Y = cmp.Or(l.Name, c.Y.Label), values
	}
	return n
}

// Mark is a vertical line with a text.
type Mark struct {
	X    float64
	Text string
}

// runName is a legend's prefix, empty with one run.
func runName(t *stats.Table, run int, what string) string {
	if len(t.Runs) < 2 {
		return what
	}
	return t.Labels[run] + " " + what
}

// ofRun is the title's suffix for a figure of one run among several.
func ofRun(t *stats.Table, run int) string {
	if len(t.Runs) < 2 {
		return ""
	}
	return ", " + t.Labels[run]
}

// lineOf is a series of a run. With several runs the colour is the run's, and the dash distinguishes
// its series; with one run each series has its own colour. More
// than eight colours are hard to distinguish, and dashes read in print.
func lineOf(t *stats.Table, run, what int, name string) Line {
	l := Line{Name: runName(t, run, name), Colour: what % Colours}
	if len(t.Runs) > 1 {
		l.Run, l.Colour, l.Dash = run+1, run%Colours, what
	}
	return l
}

// addLine adds a line that has points.
func (c *Chart) addLine(l Line) {
	if len(l.X) > 0 {
		c.Lines = append(c.Lines, l)
	}
}

// empty reports whether the chart has no number to show. A bar of no height is a value.
func (c Chart) empty() bool {
	for _, l := range c.Lines {
		for i, y := range l.Y {
			if c.Y.Shows(y) && (c.Bars || c.X.Shows(l.X[i])) {
				return false
			}
		}
	}
	return c.Heat == nil // which has something somewhere
}

// shown returns the charts that have numbers: empty axes would look like a measurement of nothing.
// It marks charts of predictions in the title, because a chart may be copied without the rest of
// the page.
func shown(simulated bool, charts ...Chart) []Chart {
	charts = slices.DeleteFunc(charts, Chart.empty)
	for i := range charts {
		if simulated {
			charts[i].Title = "SIMULATED: " + charts[i].Title
		}
	}
	return charts
}
