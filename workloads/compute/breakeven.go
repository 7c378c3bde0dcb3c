package compute

import "slices"

// Loading is the time to load a number of tokens, as points in ascending order of tokens.
//
// The time is linear between two points. Below the first point it is the longer of two times: the line
// through the first two points, which includes a latency, and the first point's time per token, because
// the line may become negative. Beyond the last point it is the last point's time per token. Both are
// extrapolations, and results report that.
type Loading []Point

// Point is one measured length.
type Point struct{ Tokens, Seconds float64 }

// seconds returns the time to load n tokens. l must have a point.
func (l Loading) seconds(n float64) float64 {
	on := func(a, b Point) float64 { // the line through two points
		perToken := (b.Seconds - a.Seconds) / (b.Tokens - a.Tokens)
		return a.Seconds - perToken*a.Tokens + perToken*n
	}
	near := l[0]
	switch i := slices.IndexFunc(l, func(x Point) bool { return n <= x.Tokens }); {
	case i > 0:
		return on(l[i-1], l[i])
	case i < 0:
		near = l[len(l)-1]
	case len(l) > 1:
		return max(on(l[0], l[1]), near.Seconds/near.Tokens*n)
	}
	return near.Seconds / near.Tokens * n
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
	for n := int64(1); n <= longest && b.Until == 0; n++ {
		wins := l.seconds(float64(n)) < c.Seconds(float64(n))
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
