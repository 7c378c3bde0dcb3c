package compute

import (
	"math"
	"slices"
)

// Loading is how long loading takes, by the tokens loaded: points in ascending order of tokens.
//
// Between two points it is a straight line. Below the first it is the longer of the line through
// the first two, which keeps a latency, and of the first point's time per token, because no load
// takes less than nothing. Beyond the last it is the last point's time per token. Both are
// extrapolation, and results say when an answer rests on it.
type Loading []Point

// Point is one measured length.
type Point struct{ Tokens, Seconds float64 }

// Seconds is the time of loading n tokens. There must be a point.
func (l Loading) Seconds(n float64) float64 {
	p, q := l.line(n)
	return p + q*n
}

// line is the straight line p + q·n on which the time of n tokens lies.
func (l Loading) line(n float64) (p, q float64) {
	through := func(a, b Point) (p, q float64) {
		q = (b.Seconds - a.Seconds) / (b.Tokens - a.Tokens)
		return a.Seconds - q*a.Tokens, q
	}
	first, last := l[0], l[len(l)-1]
	switch i := slices.IndexFunc(l, func(x Point) bool { return n <= x.Tokens }); {
	case i > 0:
		return through(l[i-1], l[i])
	case i < 0:
		return 0, last.Seconds / last.Tokens
	case len(l) > 1:
		if p, q = through(first, l[1]); p > 0 {
			return p, q
		}
	}
	return 0, first.Seconds / first.Tokens
}

// BreakEven says at which lengths loading is faster than computing.
type BreakEven struct {
	// Tokens is the smallest length at which it is, 0 = at none. Until is the smallest one above
	// that at which it is not any more, 0 = there is none up to the longest that was asked for.
	Tokens, Until int64
	// Extrapolated: the answer rests on lengths that were not measured. One of them lies outside of
	// what was, or loading is faster at the shortest measured, and so at all below it, as far as
	// one knows: a latency that long loads do not show would be seen there.
	Extrapolated bool
}

// BreakEven compares at all lengths from 1 to longest.
func (l Loading) BreakEven(c Cost, longest int64) (b BreakEven) {
	if len(l) == 0 || longest < 1 {
		return b
	}
	// Between the joints of the lines and the roots of the difference on each of them nothing
	// changes, so that the integers around them are all that has to be looked at.
	at := []int64{1, longest}
	add := func(x float64) {
		if !(x >= 1 && x <= float64(longest)) {
			return
		}
		// The second one behind it, because a root may be rounded below the integer that it is.
		at = append(at, int64(x), min(int64(x)+1, longest), min(int64(x)+2, longest))
	}
	// Each joint is on the line before it, and there is one behind the last.
	joints := []float64{2 * l[len(l)-1].Tokens}
	for _, x := range l {
		joints = append(joints, x.Tokens)
	}
	for _, n := range joints {
		add(n)
		p, q := l.line(n)
		for _, root := range roots(c.PerSquare, c.PerToken-q, -p) {
			add(root)
		}
	}
	slices.Sort(at)
	for _, n := range slices.Compact(at) {
		wins := l.Seconds(float64(n)) < c.Seconds(float64(n))
		if b.Tokens == 0 && wins {
			b.Tokens = n
		} else if b.Tokens > 0 && !wins {
			b.Until = n
			break
		}
	}
	inside := func(n int64) bool {
		return n == 0 || float64(n) >= l[0].Tokens && float64(n) <= l[len(l)-1].Tokens
	}
	b.Extrapolated = !inside(b.Tokens) || !inside(b.Until)
	return b
}

// roots are the real solutions of a·x² + b·x + c = 0.
func roots(a, b, c float64) []float64 {
	if a == 0 {
		if b == 0 {
			return nil
		}
		return []float64{-c / b}
	}
	d := b*b - 4*a*c
	if d < 0 {
		return nil
	}
	// The sum of equal signs first: their difference would lose the digits of the small root.
	s := -(b + math.Copysign(math.Sqrt(d), b)) / 2
	if s == 0 {
		return []float64{0}
	}
	return []float64{s / a, c / s}
}
