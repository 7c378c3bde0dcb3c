package view

import (
	"cmp"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"

	"kvbench/kvbench/units"
	"kvbench/tools/stats"
)

// Chart is lines or bars in one pair of axes. Its JSON is drawn by the page's script. A colour is
// an index that the drawing maps to a colour.
type Chart struct {
	Title string `json:"title"`
	X     Axis   `json:"x"`
	Y     Axis   `json:"y"`
	Heat  *Heat  `json:"heat,omitempty"`  // behind all of it
	Bands []Band `json:"bands,omitempty"` // behind the lines
	Lines []Line `json:"series"`
	Bars  bool   `json:"bars,omitempty"` // Lines are bars over the categories 0, 1, 2, … of the X axis
	Marks []Mark `json:"marks,omitempty"`
	Time  bool   `json:"time,omitempty"` // X is the time in the window: such charts zoom together
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

// HalfOctave is how much larger the end of a row is than its beginning.
const HalfOctave = math.Sqrt2

// MarshalJSON adds the height of a row and the shades of the cells.
func (h *Heat) MarshalJSON() ([]byte, error) {
	type heat Heat
	return json.Marshal(struct {
		*heat
		High   float64  `json:"high"`
		Shades []string `json:"shades"`
	}{(*heat)(h), HalfOctave, h.shades()})
}

// shades is the darkness of each cell, from 0 to 9, one digit a row: the logarithm of its count ÷
// the length of its column, relative to the largest. One request of a million still has a shade.
func (h *Heat) shades() (out []string) {
	most := math.SmallestNonzeroFloat32
	rate := func(column, row int) float64 {
		from := 0.0
		if column > 0 {
			from = h.At[column-1]
		}
		if h.At[column] <= from {
			return 0
		}
		return math.Log1p(float64(h.Counts[column][row]) / (h.At[column] - from))
	}
	for i, rows := range h.Counts {
		for k := range rows {
			most = max(most, rate(i, k))
		}
	}
	for i, rows := range h.Counts {
		digits := make([]byte, len(rows))
		for k, n := range rows {
			digits[k] = '0'
			if n > 0 {
				digits[k] += byte(min(9, max(1, math.Ceil(9*rate(i, k)/most))))
			}
		}
		out = append(out, string(digits))
	}
	return out
}

// add appends a point.
func (l *Line) add(x, y float64) { l.X, l.Y = append(l.X, x), append(l.Y, y) }

// Numbers is a chart as a table.
type Numbers struct {
	Places []float64 // on the X axis
	Labels []string  // of the places: their ticks, or empty
	Series []Series
}

// Series is a column of Numbers, with a gap where it has no point.
type Series struct {
	Name   string
	Run    int  // as a line's
	Dashed bool // the bound of a band, or a dashed line
	Values []float64
}

// Numbers has a row for each position on the X axis and a column for each line, bound of a band and
// row of a heat map. Values that an axis cannot show are in it.
func (c Chart) Numbers() (n Numbers) {
	lines := slices.Clone(c.Lines)
	for i := range lines {
		for k := range lines[i].Y {
			if c.Bars {
				lines[i].X = append(lines[i].X, float64(k))
			}
		}
	}
	for _, b := range c.Bands {
		lines = append(lines,
			Line{Name: b.Name + ", least of all trials", Run: b.Run, Dash: 1, X: b.X, Y: b.Lo},
			Line{Name: b.Name + ", most of all trials", Run: b.Run, Dash: 1, X: b.X, Y: b.Hi})
	}
	if h := c.Heat; h != nil {
		starts := append([]float64{0}, h.At[:len(h.At)-1]...)
		for k, low := range h.From {
			l := Line{Name: "how often from " + units.Number.Text(low), X: starts}
			for i := range h.At {
				l.Y = append(l.Y, float64(h.Counts[i][k]))
			}
			lines = append(lines, l)
		}
	}
	for _, l := range lines {
		n.Places = append(n.Places, l.X...)
	}
	slices.Sort(n.Places)
	n.Places = slices.Compact(n.Places)
	for _, x := range n.Places {
		label := ""
		for _, t := range c.X.Ticks {
			if t.At == x {
				label = strings.ReplaceAll(t.Label, "\n", " ")
			}
		}
		n.Labels = append(n.Labels, label)
	}
	for _, l := range lines {
		s := Series{Name: cmp.Or(l.Name, c.Y.Label), Run: l.Run, Dashed: l.Dash == 1}
		for _, x := range n.Places {
			y := math.NaN()
			if i := slices.Index(l.X, x); i >= 0 {
				y = l.Y[i]
			}
			s.Values = append(s.Values, y)
		}
		n.Series = append(n.Series, s)
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
