package html

import (
	"fmt"
	"html"
	"math"
	"strings"

	"kvbench/tools/view"
)

// colours is how many series colours the page defines.
const colours = 8

// The drawing's size in its own units. Pages scale it; text stays readable down to three quarters.
const (
	width, height                = 480, 316
	left, right, top, bottomRoom = 62, 14, 12, 60
	lineHeight                   = 16
)

// svg draws a chart. One without any number is an empty string. Coordinates are those of a
// viewBox, so that the page may scale it.
func svg(c view.Chart) string {
	x, y, ok := scales(c)
	if !ok {
		return ""
	}
	d := &drawing{}
	rows := legend(c)
	total := height + lineHeight*len(rows) + 6
	d.add(`<svg class="plot" viewBox="0 0 %d %d" role="img" aria-label="%s">`, width, total,
		html.EscapeString(c.Title))
	d.axes(c, x, y)
	for i, b := range c.Bars {
		d.bars(b, i, len(c.Bars), x, y)
	}
	for _, l := range c.Lines {
		d.line(l, x, y)
	}
	for _, m := range c.Marks {
		at := x.place(m.X)
		d.add(`<line class="mark" x1="%s" x2="%s" y1="%d" y2="%d"/>`, f(at), f(at), top,
			height-bottomRoom)
		// Near the right edge the text stands to the left of its line.
		anchor, dx := "start", 4.0
		if at > width*2/3 {
			anchor, dx = "end", -4
		}
		d.text(at+dx, top+11, anchor, "marktext", m.Text)
	}
	// The legend stands below the chart, each entry with the stroke or dot of its series.
	for i, row := range rows {
		at := float64(left)
		for _, e := range row {
			y := float64(height + lineHeight*i + 8)
			if e.apart {
				d.dot(at+10, y-4, e.colour, e.dash > 0)
				d.text(at+20, y, "start", "", e.name)
				at += e.width()
				continue
			}
			d.add(`<line x1="%s" x2="%s" y1="%s" y2="%s" stroke="var(--c%d)" stroke-width="3"%s/>`,
				f(at), f(at+16), f(y-4), f(y-4), e.colour%colours, dashes[e.dash%len(dashes)])
			d.text(at+20, y, "start", "", e.name)
			at += e.width()
		}
	}
	d.add("</svg>")
	return d.b.String()
}

// scale maps values to positions.
type scale struct {
	lo, hi   float64 // in log units for a log axis
	from, to float64
	axis     view.Axis
}

// place is where a value stands. A range of no length puts everything into the middle.
func (s scale) place(v float64) float64 {
	if s.axis.Log {
		v = math.Log10(v)
	}
	if s.hi == s.lo {
		return (s.from + s.to) / 2
	}
	return s.from + (v-s.lo)/(s.hi-s.lo)*(s.to-s.from)
}

// scales fits both axes to what is drawn. Bars stand on 0 and have half a category of room at each
// end.
func scales(c view.Chart) (x, y scale, ok bool) {
	x = scale{lo: math.Inf(1), hi: math.Inf(-1), from: left, to: width - right, axis: c.X}
	y = scale{lo: math.Inf(1), hi: math.Inf(-1), from: height - bottomRoom, to: top, axis: c.Y}
	grow := func(s *scale, v float64) {
		if s.axis.Log {
			v = math.Log10(v)
		}
		s.lo, s.hi = min(s.lo, v), max(s.hi, v)
	}
	for _, l := range c.Lines {
		for i := range l.X {
			if c.X.Shows(l.X[i]) && c.Y.Shows(l.Y[i]) {
				grow(&x, l.X[i])
				grow(&y, l.Y[i])
			}
		}
	}
	for _, b := range c.Bars {
		for i, v := range b.Y {
			grow(&x, float64(i)-0.5)
			grow(&x, float64(i)+0.5)
			if c.Y.Shows(v) {
				grow(&y, v)
			}
		}
	}
	if math.IsInf(x.lo, 0) || math.IsInf(y.lo, 0) {
		return x, y, false
	}
	stretch(c.X, &x)
	stretch(c.Y, &y)
	if len(c.Bars) == 0 || c.Y.Log {
		return x, y, true
	}
	y.lo = min(y.lo, 0)
	return x, y, true
}

// stretch applies what the axis asks for and rounds a log axis to whole decades or their halves.
// Four or five per cent of room keep points off the frame.
func stretch(a view.Axis, s *scale) {
	if a.Zero && !s.axis.Log {
		s.lo = min(s.lo, 0)
		s.hi = max(s.hi, 0)
		s.hi += (s.hi - s.lo) * 0.05
	}
	if a.Min != a.Max {
		s.lo, s.hi = a.Min, a.Max
		if s.axis.Log {
			s.lo, s.hi = math.Log10(a.Min), math.Log10(a.Max)
		}
	}
	if s.hi == s.lo {
		pad := max(0.5, math.Abs(s.lo)/20)
		s.lo, s.hi = s.lo-pad, s.hi+pad
	}
	if s.axis.Log && a.Min == a.Max && len(a.Ticks) == 0 {
		pad := (s.hi - s.lo) * 0.04
		s.lo, s.hi = s.lo-pad, s.hi+pad
	}
}

// dashes of lines.
var dashes = [...]string{"", ` stroke-dasharray="6 3"`, ` stroke-dasharray="1.5 3"`}

// entry of the legend. Series that look alike share one: the same colour and dash with the same
// name.
type entry struct {
	name   string
	colour int
	dash   int
	apart  bool
}

// width is an estimate: the page chooses the font.
func (e entry) width() float64 { return 20 + 6.3*float64(len([]rune(e.name))) + 16 }

// legend breaks the names into rows. A single series needs none. Widths are guessed at 6.3 units a
// letter, which the common sans serif fonts do not exceed.
func legend(c view.Chart) (rows [][]entry) {
	var all []entry
	seen := map[entry]bool{}
	add := func(e entry) {
		if e.name != "" && !seen[e] {
			seen[e] = true
			all = append(all, e)
		}
	}
	for _, l := range c.Lines {
		add(entry{l.Name, l.Colour, l.Dash, l.Apart})
	}
	for _, b := range c.Bars {
		add(entry{b.Name, b.Colour, 0, false})
	}
	at := math.Inf(1)
	for _, e := range all {
		if at+e.width() > width {
			rows, at = append(rows, nil), left
		}
		rows[len(rows)-1] = append(rows[len(rows)-1], e)
		at += e.width()
	}
	return rows
}

// drawing collects elements.
type drawing struct{ b strings.Builder }

// add writes an element.
func (d *drawing) add(format string, args ...any) { fmt.Fprintf(&d.b, format, args...) }

// text writes a text, escaped: names of benchmarks are the input's.
func (d *drawing) text(x, y float64, anchor, class, text string) {
	if class != "" {
		class = ` class="` + class + `"`
	}
	d.add(`<text x="%s" y="%s" text-anchor="%s"%s>%s</text>`, f(x), f(y), anchor, class,
		html.EscapeString(text))
}

// f writes a coordinate: a tenth of a unit is finer than any screen here.
func f(v float64) string {
	s := fmt.Sprintf("%.1f", v)
	return strings.TrimSuffix(s, ".0")
}
