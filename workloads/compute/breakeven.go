package compute

import (
	"math"
	"slices"
)

// Loading is the time to load a number of tokens, as points in ascending order of tokens.
//
// The time is linear between two points. Below the first point it is the longer of two times: the line
// through the first two points, which includes a latency, and the first point's time per token, because
// the line may become negative. Beyond the last point it is the last point's time per token. Both are
// extrapolations, and results report that.
type Loading []Point

// Point is one measured length.
type Point struct{ Tokens, Seconds float64 }

// line returns p and q of the line p + q·n on which the time to load n tokens is. l must have a point.
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

// BreakEven has the lengths at which loading is faster than computing.
type BreakEven struct {
	// Tokens is the smallest length at which loading is faster, 0 = none. Until is the smallest length
	// above Tokens at which loading is not faster any more, 0 = none up to the longest length.
	Tokens, Until int64
	// Extrapolated: Tokens or Until depends on lengths that were not measured. Either one of them is
	// outside the measured range, or loading is faster at the shortest measured length, and probably
	// below it: a latency that long loads do not show would appear there.
	Extrapolated bool
}

// BreakEven compares loading and computing for all lengths from 1 to longest.
func (l Loading) BreakEven(c Cost, longest int64) (b BreakEven) {
	if len(l) == 0 {
		return b
	}
	var p, q, end float64 // the line p + q·n of the current n, and the last n on this line
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
