package html

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"kvbench/tools/stats"
	"kvbench/tools/view"
)

// colours is how many series colours the page defines. More runs than that share them, and are told
// apart by their numbers.
const colours = 12

// The drawing in its own units: how large it is without a legend, and where its axes lie. Pages
// scale it; text stays readable down to three quarters. chart.svg.tmpl has the same numbers.
const (
	width, height            = 480, 316
	left, right, top, bottom = 62, 466, 12, 256
	lineHeight               = 16
)

// drawing is a chart with everything in its place, for the template to write down.
type drawing struct {
	view.Chart
	Height         int
	Shades         []shade
	Areas          []area
	XTicks, YTicks []view.Tick
	Columns        []column
	Strokes        []stroke
	Legend         []entry
}

// column is one bar.
type column struct {
	X, Y, Width, Height float64
	Colour, Run         int
	Says                string // to who points at it
}

// area is what lies between two lines.
type area struct {
	Path        string
	Colour, Run int
}

// stroke is a line with dots, or dots that are not joined: between memory and disk lies nothing.
type stroke struct {
	Path              string
	Colour, Dash, Run int
	Apart             bool
	Dots              []dot
	At                *dot  // where the number of its run stands
	places            []dot // all points
}

// dot is a point; the hollow one stands for what a dashed line would.
type dot struct {
	X, Y   float64
	Colour int
	Hollow bool
	Says   string
}

// entry of the legend. Series that look alike share one: the same colour and dash with the same
// name.
type entry struct {
	Name              string
	Colour, Dash, Run int
	Apart             bool
	X, Y              float64
}

// Dot is what shows a series of dots.
func (e entry) Dot() dot {
	return dot{X: e.X + 10, Y: e.Y - 4, Colour: e.Colour, Hollow: e.Dash > 0}
}

// draw lays out a chart, which has a number: package view shows no other.
func draw(c view.Chart) *drawing {
	x, y := scales(c)
	d := &drawing{Chart: c, Height: height + 6, XTicks: ticks(x, 7), YTicks: ticks(y, 6)}
	for i, b := range c.Bars {
		d.bars(b, i, len(c.Bars), x, y)
		d.legend(entry{Name: b.Name, Colour: b.Colour % colours, Run: b.Run})
	}
	if c.Heat != nil {
		d.Shades = shades(c.Heat, x, y)
	}
	for _, b := range c.Bands {
		d.Areas = append(d.Areas, newArea(b, x, y))
	}
	for i, l := range c.Lines {
		l.Colour %= colours
		l.Dash %= 3
		s := newStroke(l, x, y)
		s.number(i, len(c.Lines))
		d.Strokes = append(d.Strokes, s)
		d.legend(entry{Name: l.Name, Colour: l.Colour, Dash: l.Dash, Run: l.Run, Apart: l.Apart})
	}
	d.Marks = nil
	for _, m := range c.Marks {
		d.Marks = append(d.Marks, view.Mark{X: x.place(m.X), Text: m.Text})
	}
	return d
}

// legend adds an entry, in a new row where the last one is full. The page chooses the font: widths
// are guessed at 6.3 units a letter, which the common sans serif fonts do not exceed.
func (d *drawing) legend(e entry) {
	if e.Run > 0 {
		e.Name = fmt.Sprintf("%d %s", e.Run, e.Name)
	}
	if e.Name == "" || slices.ContainsFunc(d.Legend, func(have entry) bool {
		have.X, have.Y = 0, 0
		return have == e
	}) {
		return
	}
	wide := func(e entry) float64 { return 20 + 6.3*float64(utf8.RuneCountInString(e.Name)) + 16 }
	e.X, e.Y = left, height+8
	if n := len(d.Legend); n > 0 {
		last := d.Legend[n-1]
		e.X, e.Y = last.X+wide(last), last.Y
		if e.X+wide(e) > width {
			e.X, e.Y = left, last.Y+lineHeight
		}
	}
	d.Legend = append(d.Legend, e)
	d.Height = int(e.Y) + 14
}

// newStroke draws a series. A gap lifts the pen: a line across it would claim values that nobody
// has.
func newStroke(l view.Line, x, y scale) stroke {
	s := stroke{Colour: l.Colour, Dash: l.Dash, Run: l.Run, Apart: l.Apart}
	var path strings.Builder
	pen, lastY := "M", 0.0
	for i := range l.X {
		if !x.axis.Shows(l.X[i]) || !y.axis.Shows(l.Y[i]) {
			pen = "M"
			continue
		}
		px, py := x.place(l.X[i]), y.place(l.Y[i])
		// A value holds until the next: a step, not a slope.
		if l.Step && pen == "L" {
			path.WriteString("L" + at(px) + " " + at(lastY))
		}
		path.WriteString(pen + at(px) + " " + at(py))
		pen, lastY = "L", py
		d := dot{px, py, l.Colour, l.Dash > 0, l.Name + ": " + stats.Number(l.Y[i])}
		if s.places = append(s.places, d); l.Dots || l.Apart {
			s.Dots = append(s.Dots, d)
		}
	}
	s.Path = path.String()
	return s
}

// number puts the number of the run at a point of the i-th line of n. Each line has another part
// of the axis for it, because lines that lie close together lie so over all of it.
func (s *stroke) number(i, n int) {
	if k := len(s.places); s.Run > 0 && k > 1 {
		s.At = &s.places[(2*i+1)*k/(2*n)]
	}
}

// newArea draws a band as one shape for each stretch without a gap: along its upper line, and back
// along the lower one.
func newArea(b view.Band, x, y scale) area {
	var path strings.Builder
	var there, back []string
	for i := range len(b.X) + 1 {
		if i < len(b.X) && x.axis.Shows(b.X[i]) && y.axis.Shows(b.Lo[i]) && y.axis.Shows(b.Hi[i]) {
			px := at(x.place(b.X[i]))
			hi, lo := at(y.place(b.Hi[i])), at(y.place(b.Lo[i]))
			if k := len(there); b.Step && k > 0 { // a value holds until the next
				_, before, _ := strings.Cut(there[k-1], " ")
				_, under, _ := strings.Cut(back[k-1], " ")
				there, back = append(there, px+" "+before), append(back, px+" "+under)
			}
			there, back = append(there, px+" "+hi), append(back, px+" "+lo)
			continue
		}
		slices.Reverse(back)
		if len(there) > 0 {
			path.WriteString("M" + strings.Join(append(there, back...), "L") + "Z")
		}
		there, back = nil, nil
	}
	return area{Path: path.String(), Colour: b.Colour % colours, Run: b.Run}
}

// shade is all cells of a heat map that are equally dark.
type shade struct {
	Path    string
	Colour  int
	Opacity float64
}

// mostShades are told apart on screen and in print.
const mostShades = 8

// shades draws a heat map: a path for each shade is a tenth of the text that cells would be.
func shades(h *view.Heat, x, y scale) (out []shade) {
	paths := make([]strings.Builder, mostShades+1)
	share := h.Shades()
	left := 0.0
	for i, end := range h.At {
		for k, low := range h.From {
			if h.Counts[i][k] > 0 {
				x0, x1 := at(x.place(left)), at(x.place(end))
				y0, y1 := at(y.place(low)), at(y.place(low*view.HalfOctave))
				fmt.Fprintf(&paths[max(1, int(math.Ceil(share[i][k]*mostShades)))],
					"M%s %sH%sV%sH%sZ", x0, y0, x1, y1, x0)
			}
		}
		left = end
	}
	for n := range paths {
		if paths[n].Len() > 0 {
			out = append(out, shade{paths[n].String(), h.Colour % colours,
				float64(n) / mostShades})
		}
	}
	return out
}

// bars draws the i-th of n series over the categories, beside the others.
func (d *drawing) bars(b view.Bars, i, n int, x, y scale) {
	slot := (x.place(1) - x.place(0)) * 0.82
	w := slot / float64(n)
	for k, v := range b.Y {
		if y.axis.Shows(v) && v != 0 {
			d.Columns = append(d.Columns, column{x.place(float64(k)) - slot/2 + float64(i)*w,
				y.place(v), max(0.5, w-0.5), max(0.5, bottom-y.place(v)), b.Colour % colours, b.Run,
				fmt.Sprintf("%s: %s", b.Name, stats.Number(v))})
		}
	}
}

// at writes a coordinate, moved by so much: a tenth of a unit is finer than any screen here.
func at(v float64, by ...float64) string {
	for _, d := range by {
		v += d
	}
	return strings.TrimSuffix(fmt.Sprintf("%.1f", v), ".0")
}
