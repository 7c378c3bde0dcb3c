package view

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/floats"

	"kvbench/tools/stats"
)

// Chart is lines or bars in one pair of axes. It knows nothing of colours on paper or screen: a
// number of a colour is what the drawing looks up.
type Chart struct {
	Title string
	X, Y  Axis
	Heat  *Heat  // behind all of it
	Bands []Band // behind the lines
	Lines []Line
	Bars  []Bars
	Marks []Mark
	Time  bool // X is the time in the window: charts that share it are looked at together
}

// Axis is one of them. Values are those of the data; Ticks replaces the computed ones. On a
// logarithmic axis what is not positive cannot be shown, and is a gap.
type Axis struct {
	Label string // with the unit
	Log   bool
	Ticks []Tick
	Zero  bool // begin at 0
	Min   float64
	Max   float64 // with Min: fixed range when they differ
}

// Shows says whether a value can stand on the axis.
func (a Axis) Shows(v float64) bool {
	return !math.IsNaN(v) && !math.IsInf(v, 0) && (!a.Log || v > 0)
}

// Tick is a labelled position. A newline in the label begins a second line.
type Tick struct {
	At    float64
	Label string
}

// Line is a series of points, in the order of X. Gaps are points that are not numbers.
type Line struct {
	Name   string
	Run    int // whose it is, from 1; 0 where there is one run
	Colour int // of the page's; the same for what belongs together
	Dash   int // 0 solid, 1 dashed, 2 dotted
	Dots   bool
	Step   bool // a value holds until the next point
	Apart  bool // points that no line joins: the X axis has categories
	X, Y   []float64
}

// Band is the area between the bounds of a line.
type Band struct {
	Name        string // the line's
	Run, Colour int
	Step        bool
	X, Lo, Hi   []float64
}

// Heat is how often values lay where, over time: rows of a logarithmic Y axis, columns of an X axis
// that begins at 0.
type Heat struct {
	Colour int
	At     []float64 // where columns end
	From   []float64 // where rows begin, each a half octave high
	Counts [][]int64 // by column and row
}

// HalfOctave is how much larger the end of a row is than its beginning.
const HalfOctave = math.Sqrt2

// Shades is how dark each cell is, from 0 to 1: by the logarithm of its count ÷ the length of its
// column, against the most of any. One request of a million is still seen.
func (h *Heat) Shades() [][]float64 {
	most := 0.0
	out := make([][]float64, len(h.Counts))
	for i, rows := range h.Counts {
		out[i] = make([]float64, len(rows))
		for k := range rows {
			out[i][k] = math.Log1p(h.rate(i, k))
			most = max(most, out[i][k])
		}
	}
	for _, rows := range out {
		floats.Scale(1/max(most, math.SmallestNonzeroFloat32), rows)
	}
	return out
}

// rate is how many of them there were in a second.
func (h *Heat) rate(column, row int) float64 {
	from := 0.0
	if column > 0 {
		from = h.At[column-1]
	}
	if h.At[column] <= from {
		return 0
	}
	return float64(h.Counts[column][row]) / (h.At[column] - from)
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

// Numbers has a row for each position on the X axis and a column for each line, series of bars,
// bound of a band and row of a heat map. Values that an axis cannot show are in it.
func (c Chart) Numbers() (n Numbers) {
	lines := slices.Clone(c.Lines)
	for _, b := range c.Bars {
		l := Line{Name: b.Name, Run: b.Run, Y: b.Y}
		for i := range b.Y {
			l.X = append(l.X, float64(i))
		}
		lines = append(lines, l)
	}
	for _, b := range c.Bands {
		lines = append(lines,
			Line{Name: b.Name + ", least of all trials", Run: b.Run, Dash: 1, X: b.X, Y: b.Lo},
			Line{Name: b.Name + ", most of all trials", Run: b.Run, Dash: 1, X: b.X, Y: b.Hi})
	}
	if h := c.Heat; h != nil {
		starts := append([]float64{0}, h.At[:len(h.At)-1]...)
		for k, low := range h.From {
			l := Line{Name: "how often from " + stats.Number(low), X: starts}
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

// Bars is a series over the categories 0, 1, 2, … of the X axis.
type Bars struct {
	Name   string
	Run    int // as a line's
	Colour int
	Y      []float64
}

// Mark is a vertical line with a text.
type Mark struct {
	X    float64
	Text string
}

// runName is a legend's prefix; with one run it says nothing.
func runName(t *stats.Table, run int, what string) string {
	if len(t.Runs) < 2 {
		return what
	}
	return t.Labels[run] + " " + what
}

// ofRun is what a title says of a figure of one run among several.
func ofRun(t *stats.Table, run int) string {
	if len(t.Runs) < 2 {
		return ""
	}
	return ", " + t.Labels[run]
}

// lineOf is a series of a run. Its colour is that of the run where there are several, and the dash
// tells apart what has it in common; with one run the colour is that of what it shows. More
// than eight colours are hard to distinguish, and dashes read in print.
func lineOf(t *stats.Table, run, what int, name string) Line {
	l := Line{Name: runName(t, run, name), Colour: what}
	if len(t.Runs) > 1 {
		l.Run, l.Colour, l.Dash = run+1, run, what
	}
	return l
}

// addLine adds a line that has points.
func (c *Chart) addLine(l Line) {
	if len(l.X) > 0 {
		c.Lines = append(c.Lines, l)
	}
}

// empty says that the chart has no number to show.
func (c Chart) empty() bool {
	for _, l := range c.Lines {
		for i := range l.X {
			if c.X.Shows(l.X[i]) && c.Y.Shows(l.Y[i]) {
				return false
			}
		}
	}
	if c.Heat != nil { // which has something somewhere
		return false
	}
	// A bar of no height is a value; one without a value is none.
	return !slices.ContainsFunc(c.Bars,
		func(b Bars) bool { return slices.ContainsFunc(b.Y, c.Y.Shows) })
}

// shown are the charts that have numbers: an empty pair of axes would be read as a measurement of
// nothing. Those of a prediction are marked: the name of the benchmark says it too, but a chart may
// be cut out and passed on with nothing but its title.
func shown(simulated bool, charts ...Chart) []Chart {
	charts = slices.DeleteFunc(charts, Chart.empty)
	for i := range charts {
		if simulated {
			charts[i].Title = "SIMULATED: " + charts[i].Title
		}
	}
	return charts
}
