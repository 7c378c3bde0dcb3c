package html

import (
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"kvbench/tools/view"
)

// scale maps values to positions.
type scale struct {
	lo, hi   float64 // in log units for a log axis
	from, to float64
	axis     view.Axis
}

// value is what is laid out evenly: the logarithm on a log axis.
func (s scale) value(v float64) float64 {
	if s.axis.Log {
		return math.Log10(v)
	}
	return v
}

// place is where a value stands. A range of no length puts everything into the middle.
func (s scale) place(v float64) float64 {
	if s.hi == s.lo {
		return (s.from + s.to) / 2
	}
	return s.from + (s.value(v)-s.lo)/(s.hi-s.lo)*(s.to-s.from)
}

// fit makes room for values.
func (s *scale) fit(values ...float64) {
	for _, v := range values {
		s.lo, s.hi = min(s.lo, s.value(v)), max(s.hi, s.value(v))
	}
}

// scales fits both axes to what is drawn, which has a number. Bars stand on 0 and have half a
// category of room at each end.
func scales(c view.Chart) (x, y scale) {
	x = scale{math.Inf(1), math.Inf(-1), left, right, c.X}
	y = scale{math.Inf(1), math.Inf(-1), bottom, top, c.Y}
	for _, l := range c.Lines {
		for i := range l.X {
			if c.X.Shows(l.X[i]) && c.Y.Shows(l.Y[i]) {
				x.fit(l.X[i])
				y.fit(l.Y[i])
			}
		}
	}
	if h := c.Heat; h != nil {
		x.fit(0, h.At[len(h.At)-1])
		y.fit(h.From[0], h.From[len(h.From)-1]*view.HalfOctave)
	}
	for _, b := range c.Bands {
		for i := range b.X {
			if c.X.Shows(b.X[i]) && c.Y.Shows(b.Lo[i]) && c.Y.Shows(b.Hi[i]) {
				x.fit(b.X[i])
				y.fit(b.Lo[i], b.Hi[i])
			}
		}
	}
	for _, b := range c.Bars {
		x.fit(-0.5, float64(len(b.Y))-0.5)
		for _, v := range b.Y {
			if c.Y.Shows(v) {
				y.fit(v)
			}
		}
	}
	x.stretch()
	y.stretch()
	if len(c.Bars) > 0 && !c.Y.Log {
		y.lo = min(y.lo, 0)
	}
	return x, y
}

// stretch applies what the axis asks for and rounds a log axis to whole decades or their halves.
// Four or five per cent of room keep points off the frame.
func (s *scale) stretch() {
	a := s.axis
	fixed := a.Min != a.Max
	if a.Zero && !a.Log {
		s.lo, s.hi = min(s.lo, 0), max(s.hi, 0)
		s.hi += (s.hi - s.lo) * 0.05
	}
	if fixed {
		s.lo, s.hi = s.value(a.Min), s.value(a.Max)
	}
	if s.hi == s.lo {
		pad := max(0.5, math.Abs(s.lo)/20)
		s.lo, s.hi = s.lo-pad, s.hi+pad
	}
	if a.Log && !fixed && len(a.Ticks) == 0 {
		pad := (s.hi - s.lo) * 0.04
		s.lo, s.hi = s.lo-pad, s.hi+pad
	}
}

// ticks are the marks of an axis in their places: about as many as asked for. Too many are worse
// than too few: labels that touch cannot be read.
func ticks(s scale, most int) (out []view.Tick) {
	switch {
	case len(s.axis.Ticks) > 0:
		out = given(s)
	case s.axis.Log:
		out = decades(s)
	default:
		step := niceStep((s.hi - s.lo) / float64(most))
		first := math.Ceil(s.lo/step - 1e-9)
		for i := range 4 * most { // a bound, because far from 0 a step may be lost in the sum
			v := (first + float64(i)) * step
			if v > s.hi+step*1e-9 {
				break
			}
			out = append(out, view.Tick{At: v, Label: decimal(v, step)})
		}
	}
	for i := range out {
		out[i].At = s.place(out[i].At)
	}
	return out
}

// ends are the values at both ends.
func (s scale) ends() [2]number {
	if s.axis.Log {
		return [2]number{number(math.Pow(10, s.lo)), number(math.Pow(10, s.hi))}
	}
	return [2]number{number(s.lo), number(s.hi)}
}

// inside says whether a value is in the range.
func (s scale) inside(v float64) bool { return s.value(v) >= s.lo-1e-9 && s.value(v) <= s.hi+1e-9 }

// given are an axis's own ticks, thinned out from the left where they would overlap.
func given(s scale) (out []view.Tick) {
	last := math.Inf(-1)
	for _, t := range s.axis.Ticks {
		first, second, _ := strings.Cut(t.Label, "\n")
		room := 7 * (1 + max(utf8.RuneCountInString(first), utf8.RuneCountInString(second)))
		if at := s.place(t.At); s.inside(t.At) &&
			(s.from >= s.to || math.Abs(at-last) >= float64(room)) {
			last = at
			out = append(out, t)
		}
	}
	return out
}

// decades are ticks of a log axis, with 2 and 5 between them when there are few. A decade of its
// own needs marks in between, or nothing could be read off.
func decades(s scale) (out []view.Tick) {
	span := s.hi - s.lo
	factors, every := []float64{1}, max(1, math.Ceil(span/10))
	switch {
	case span < 1.2:
		factors = []float64{1, 2, 3, 5, 7}
	case span < 2.5:
		factors = []float64{1, 2, 5}
	}
	for e := math.Floor(s.lo); e <= s.hi; e += every {
		for _, k := range factors {
			if v := k * math.Pow(10, e); s.inside(v) {
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

// decimal writes a tick with the decimals that its step needs. All ticks of an axis have the same
// decimals.
func decimal(v, step float64) string {
	decimals := max(0, int(math.Ceil(-math.Log10(step)-1e-9)))
	if v == 0 || decimals > 6 || math.Abs(v) >= 1e7 {
		return short(v)
	}
	return strconv.FormatFloat(v, 'f', decimals, 64)
}

// short writes numbers that need an exponent, and others without trailing zeros.
func short(v float64) string {
	if a := math.Abs(v); a >= 1e6 || a < 1e-4 && a > 0 {
		return strings.Replace(strconv.FormatFloat(v, 'e', 0, 64), "e+0", "e", 1)
	}
	return strconv.FormatFloat(v, 'g', 6, 64)
}
