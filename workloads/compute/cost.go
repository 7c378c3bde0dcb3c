package compute

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Cost is the time that a server takes to compute the keys and values of a prompt of n tokens, its
// prefill: PerToken·n + PerSquare·n² seconds. The first term is the products of the layers with their
// weights. The second term is the attention of each token to all tokens before it. It is small at a few
// thousand tokens and most of the time at a hundred thousand. Both terms are for the whole server, with
// all its GPUs, at the measured load. The zero Cost is free.
type Cost struct {
	PerToken  float64 // seconds per token
	PerSquare float64 // seconds per token²
}

// Free reports whether computing takes no time.
func (c Cost) Free() bool { return c == Cost{} }

// Seconds returns the time of the first n tokens.
func (c Cost) Seconds(n float64) float64 { return c.PerToken*n + c.PerSquare*n*n }

// Span returns the time to compute the tokens from, from+1, … to-1 of a prompt whose earlier tokens are
// already computed: the difference of two prompts. It is between 0 and ten years, so that sums cannot
// overflow.
func (c Cost) Span(from, to int64) time.Duration {
	// Compute the difference of squares as a product: subtracting two large squares would lose digits.
	f, t := float64(from), float64(to)
	seconds := (t - f) * (c.PerToken + c.PerSquare*(t+f))
	const decade = 10 * 365 * 24 * time.Hour
	if !(seconds < decade.Seconds()) {
		return decade
	}
	return time.Duration(math.Round(max(seconds, 0) * 1e9))
}

// Limits of the values of a flag. No real server is outside of them.
const (
	maxRate   = 1e12 // tokens/s
	maxSecond = 1e6
)

// ParseCost parses a rate in tokens/s, "22200", or both parts in seconds, "a=4.5e-05,b=1e-10", one of
// which may be missing. The empty text and 0 are the free Cost. The error completes "must be …".
func ParseCost(text string) (c Cost, err error) {
	rule := errors.New("a rate in tokens/s such as 22200, or a=4.5e-05,b=1e-10, the seconds per " +
		"token and per token² of a·n + b·n²")
	if text == "" {
		return c, nil
	}
	if rate, err := strconv.ParseFloat(text, 64); err == nil {
		if !(rate >= 0 && rate <= maxRate) {
			return c, rule
		}
		if rate > 0 {
			c.PerToken = 1 / rate
		}
		return c, nil
	}
	seen := map[string]bool{}
	for pair := range strings.SplitSeq(text, ",") {
		name, value, _ := strings.Cut(pair, "=")
		x, err := strconv.ParseFloat(value, 64)
		to := map[string]*float64{"a": &c.PerToken, "b": &c.PerSquare}[name]
		if err != nil || to == nil || seen[name] || !(x >= 0 && x <= maxSecond) {
			return Cost{}, rule
		}
		seen[name], *to = true, x
	}
	if c.Free() {
		return c, rule // both parts are 0: a mistake
	}
	return c, nil
}

// String returns a text from which ParseCost returns the same cost: a rate if possible.
func (c Cost) String() string {
	number := func(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }
	if c.PerSquare == 0 {
		if c.PerToken == 0 {
			return "0"
		}
		rate := 1 / c.PerToken
		// Print a rate if it gives exactly the same cost. Otherwise print the seconds.
		for _, r := range []float64{math.Round(rate), rate} {
			if 1/r == c.PerToken {
				return strconv.FormatFloat(r, 'f', -1, 64)
			}
		}
	}
	return fmt.Sprintf("a=%s,b=%s", number(c.PerToken), number(c.PerSquare))
}

// through returns the cost for two measurements, each of n tokens and the seconds that they took.
func through(n1, seconds1, n2, seconds2 float64) Cost {
	// Both equations divided by n are a line: seconds/n = a + b·n.
	b := (seconds2/n2 - seconds1/n1) / (n2 - n1)
	return Cost{PerToken: seconds1/n1 - b*n1, PerSquare: b}
}
