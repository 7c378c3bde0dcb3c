package html

import (
	"html"
	"math"
	"strconv"
	"strings"

	"kvbench/tools/view"
)

// axes draws grid, ticks and labels. The grid is drawn first and lies below everything.
func (d *drawing) axes(c view.Chart, x, y scale) {
	d.add(`<g class="axes">`)
	for _, t := range ticks(c.Y, y, 6) {
		at := y.place(t.At)
		d.add(`<line class="grid" x1="%d" x2="%d" y1="%s" y2="%s"/>`, left, width-right, f(at),
			f(at))
		d.text(left-6, at+4, "end", "", t.Label)
	}
	xTicks := ticks(c.X, x, 7)
	for _, t := range xTicks {
		at := x.place(t.At)
		if len(c.Bars) == 0 {
			d.add(`<line class="grid" x1="%s" x2="%s" y1="%d" y2="%d"/>`, f(at), f(at), top,
				height-bottomRoom)
		}
		first, second, two := strings.Cut(t.Label, "\n")
		d.text(at, height-bottomRoom+15, "middle", "", first)
		if two {
			d.text(at, height-bottomRoom+30, "middle", "", second)
		}
	}
	d.add(`<line class="base" x1="%d" x2="%d" y1="%d" y2="%d"/>`, left, width-right,
		height-bottomRoom, height-bottomRoom)
	d.text((left+width-right)/2, height-bottomRoom+47, "middle", "label", c.X.Label)
	d.add(`<text transform="translate(13 %d) rotate(-90)" text-anchor="middle" `+
		`class="label">%s</text></g>`, (top+height-bottomRoom)/2, html.EscapeString(c.Y.Label))
}

// ticks returns the given ticks within the range, thinned out to what fits, or round numbers. Too
// many are worse than too few: labels that touch cannot be read.
func ticks(a view.Axis, s scale, most int) []view.Tick {
	inside := func(v float64) bool {
		if s.axis.Log {
			v = math.Log10(v)
		}
		return v >= s.lo-1e-9 && v <= s.hi+1e-9
	}
	if len(a.Ticks) > 0 {
		// Given ticks are thinned out from the left where they would overlap.
		var out []view.Tick
		room, last := 0.0, math.Inf(-1)
		for _, t := range a.Ticks {
			if !inside(t.At) {
				continue
			}
			at := s.place(t.At)
			first, second, _ := strings.Cut(t.Label, "\n")
			if room = 7 * float64(max(len([]rune(first)),
				len([]rune(second)))+1); math.Abs(at-last) < room && s.from < s.to {
				continue
			}
			last = at
			out = append(out, t)
		}
		return out
	}
	if s.axis.Log {
		return logTicks(s)
	}
	// About as many as asked for, at round numbers.
	step := niceStep((s.hi - s.lo) / float64(most))
	var out []view.Tick
	first := math.Ceil(s.lo/step - 1e-9)
	for i := range 4 * most { // a bound, because far from 0 a step may be lost in the sum
		v := (first + float64(i)) * step
		if v > s.hi+step*1e-9 {
			break
		}
		out = append(out, view.Tick{At: v, Label: number(v, step)})
	}
	return out
}

// logTicks are decades, with 2 and 5 between them when there are few. A decade of its own needs
// marks in between, or nothing could be read off.
func logTicks(s scale) (out []view.Tick) {
	factors, every := []float64{1}, max(1, math.Ceil((s.hi-s.lo)/10)) // decades
	switch span := s.hi - s.lo; {
	case span < 1.2:
		factors = []float64{1, 2, 3, 5, 7}
	case span < 2.5:
		factors = []float64{1, 2, 5}
	}
	for e := math.Floor(s.lo); e <= s.hi; e += every {
		for _, k := range factors {
			v := k * math.Pow(10, e)
			if l := math.Log10(v); l >= s.lo-1e-9 && l <= s.hi+1e-9 {
				out = append(out, view.Tick{At: v, Label: short(v)})
			}
		}
	}
	return out
}

// niceStep is the next of 1, 2, 5 times a power of ten.
func niceStep(v float64) float64 {
	if v <= 0 || math.IsInf(v, 0) || math.IsNaN(v) {
		return 1
	}
	e := math.Pow(10, math.Floor(math.Log10(v)))
	for _, k := range []float64{1, 2, 5} {
		if k*e >= v*(1-1e-9) {
			return k * e
		}
	}
	return 10 * e
}

// number writes a tick with the decimals that its step needs. All ticks of an axis have the same
// decimals.
func number(v, step float64) string {
	if v == 0 {
		return "0"
	}
	decimals := max(0, int(math.Ceil(-math.Log10(step)-1e-9)))
	if decimals > 6 || math.Abs(v) >= 1e7 {
		return short(v)
	}
	return strconv.FormatFloat(v, 'f', decimals, 64)
}

// short writes numbers that need an exponent, and others without trailing zeros.
func short(v float64) string {
	if a := math.Abs(v); a >= 1e6 || a < 1e-4 {
		return strings.Replace(strconv.FormatFloat(v, 'e', 0, 64), "e+0", "e", 1)
	}
	return strconv.FormatFloat(v, 'g', 6, 64)
}

// line draws a series. A gap lifts the pen: a line across it would claim values that nobody has.
func (d *drawing) line(l view.Line, x, y scale) {
	if l.Apart {
		for i := range l.X {
			if x.axis.Shows(l.X[i]) && y.axis.Shows(l.Y[i]) {
				d.dot(x.place(l.X[i]), y.place(l.Y[i]), l.Colour, l.Dash > 0)
			}
		}
		return
	}
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
			path.WriteString("L" + f(px) + " " + f(lastY))
		}
		path.WriteString(pen + f(px) + " " + f(py))
		pen, lastY = "L", py
	}
	d.add(`<path d="%s" fill="none" stroke="var(--c%d)" stroke-width="1.8" `+
		`stroke-linejoin="round"%s/>`, path.String(), l.Colour%colours, dashes[l.Dash%len(dashes)])
	if !l.Dots {
		return
	}
	for i := range l.X {
		if x.axis.Shows(l.X[i]) && y.axis.Shows(l.Y[i]) {
			d.add(`<circle cx="%s" cy="%s" r="3" fill="var(--c%d)"/>`, f(x.place(l.X[i])),
				f(y.place(l.Y[i])), l.Colour%colours)
		}
	}
}

// dot is a point; the hollow one stands for what a dashed line would. Points of categories are not
// joined: between memory and disk lies nothing.
func (d *drawing) dot(x, y float64, colour int, hollow bool) {
	if hollow {
		d.add(`<circle cx="%s" cy="%s" r="4.5" fill="none" stroke="var(--c%d)" stroke-width="2"/>`,
			f(x), f(y), colour%colours)
		return
	}
	d.add(`<circle cx="%s" cy="%s" r="4.5" fill="var(--c%d)"/>`, f(x), f(y), colour%colours)
}

// bars draws the i-th of n series over the categories, beside the others.
func (d *drawing) bars(b view.Bars, i, n int, x, y scale) {
	slot := (x.place(1) - x.place(0)) * 0.82
	w := slot / float64(n)
	zero := y.from
	for k, v := range b.Y {
		if !y.axis.Shows(v) || v == 0 {
			continue
		}
		at := y.place(v)
		d.add(`<rect x="%s" y="%s" width="%s" height="%s" fill="var(--c%d)"/>`,
			f(x.place(float64(k))-slot/2+float64(i)*w), f(at),
			f(max(0.5, w-0.5)), f(max(0.5, zero-at)), b.Colour%colours)
	}
}
