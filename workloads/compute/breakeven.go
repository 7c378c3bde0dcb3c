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

// line is the straight line p + q·n on which the time of loading n tokens lies. There
// must be a point.
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
	if len(l) == 0 {
		return b
	}
	var p, q, end float64 // the line of n, and its last length
	for n := int64(1); n <= longest && b.Until == 0; n++ {
		x := float64(n)
		if x > end {
			p, q = l.line(x)
			end = math.Inf(1)
			if i := slices.IndexFunc(l, func(at Point) bool { return x <= at.Tokens }); i >= 0 {
				end = l[i].Tokens
			}
		}
		wins := p+q*x < c.Seconds(x)
		if b.Tokens == 0 && wins {
			b.Tokens = n
		} else if b.Tokens > 0 && !wins {
			b.Until = n
		}
	}
	inside := func(n int64) bool {
		return n == 0 || float64(n) >= l[0].Tokens && float64(n) <= l[len(l)-1].Tokens
	}
	b.Extrapolated = !inside(b.Tokens) || !inside(b.Until)
	return b
}
