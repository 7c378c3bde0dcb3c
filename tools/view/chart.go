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

// Chart is a line chart or a bar chart. The page's script draws its JSON. The workbook draws a native
// chart, which has no heat map, marks or steps, and shows bands as dashed lines. A colour is an index
// into the palette of the document.
type Chart struct {
	Title string `json:"title"`
	X     Axis   `json:"x"`
	Y     Axis   `json:"y"`
	Heat  *Heat  `json:"heat,omitempty"`  // behind everything else; not in native charts
	Bands []Band `json:"bands,omitempty"` // behind the lines
	Lines []Line `json:"series"`
	Bars  bool   `json:"bars,omitempty"`  // Lines are bars over the categories 0, 1, 2, … of the X axis
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

// Tick is a labelled position. A newline in the label begins a second line.
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

// Line is a series of points sorted by X, or a series of bars without X.
type Line struct {
	Name   string `json:"name"`
	Run    int    `json:"run,omitempty"`  // from 1; 0 with one run
	Colour int    `json:"colour"`         // below Colours
	Dash   int    `json:"dash,omitempty"` // 0 solid, 1 dashed, 2 dotted
	Dots   bool   `json:"dots,omitempty"`
	Step   bool   `json:"step,omitempty"`  // a value holds until the next point
	Apart  bool   `json:"apart,omitempty"` // points without a line, for an X axis of categories
	X      Values `json:"x,omitempty"`
	Y      Values `json:"y"`
}

// Band is the area between the bounds of a line.
type Band struct {
	Name   string `json:"-"` // the name of the line
	Run    int    `json:"run,omitempty"`
	Colour int    `json:"colour"`
	Step   bool   `json:"step,omitempty"`
	X      Values `json:"x"`
	Lo     Values `json:"lo"`
	Hi     Values `json:"hi"`
}

// Heat has counts of values over time. Columns are intervals of the X axis, which begins at 0. Rows are
// intervals of the logarithmic Y axis.
type Heat struct {
	Colour int       `json:"colour"`
	At     Values    `json:"at"`     // ends of columns
	From   Values    `json:"from"`   // beginnings of rows, each a half octave high
	Counts [][]int64 `json:"counts"` // by column and row
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

// Numbers is a chart as a table. It has a row per position on the X axis (per tick if the axis has
// ticks), and a column per line, bound of a band and row of a heat map. It includes values that an axis
// cannot show.
type Numbers struct {
	Places []float64 // on the X axis
	Labels []string  // of the places, if there are ticks
	Series []Line    // with one Y per place, NaN if the line has no value there
}

// Numbers returns the chart as a table.
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

// runName returns a legend text: the run's label and what, or only what with one run.
func runName(t *stats.Table, run int, what string) string {
	if len(t.Runs) < 2 {
		return what
	}
	return t.Labels[run] + " " + what
}

// ofRun returns the suffix of a title of one run's figure, "" with one run.
func ofRun(t *stats.Table, run int) string {
	if len(t.Runs) < 2 {
		return ""
	}
	return ", " + t.Labels[run]
}

// lineOf returns a line of a run. With several runs the colour is the run and the dash is the series.
// With one run each series has its own colour. Dashes also read in print.
func lineOf(t *stats.Table, run, what int, name string) Line {
	l := Line{Name: runName(t, run, name), Colour: what % Colours}
	if len(t.Runs) > 1 {
		l.Run, l.Colour, l.Dash = run+1, run%Colours, what
	}
	return l
}

// addLine adds a line if it has points.
func (c *Chart) addLine(l Line) {
	if len(l.X) > 0 {
		c.Lines = append(c.Lines, l)
	}
}

// empty reports whether the chart has nothing to show. A bar of height 0 is a value.
func (c Chart) empty() bool {
	for _, l := range c.Lines {
		for i, y := range l.Y {
			if c.Y.Shows(y) && (c.Bars || c.X.Shows(l.X[i])) {
				return false
			}
		}
	}
	return c.Heat == nil // a heat map always has counts
}

// shown returns the charts that have values: empty axes look like a measurement of nothing. If simulated
// is true, each title says so, because a chart may be copied without the page.
func shown(simulated bool, charts ...Chart) []Chart {
	charts = slices.DeleteFunc(charts, Chart.empty)
	for i := range charts {
		if simulated {
			charts[i].Title = "SIMULATED: " + charts[i].Title
		}
	}
	return charts
}
