// What is significant: the judgements of two sides of a comparison. Each is about medians, and none
// of them takes samples for normally distributed, because rates of a drive that collects its
// garbage are not.

package stats

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"

	"kvbench/kvbench/units"
)

// LeastSamples is the smallest number of trials per side that are judged. Three against three are never
// below p = 0.05: the most extreme of the 20 permutations has exactly 0.05.
const LeastSamples = 4

// Holm returns p values corrected by Holm's step-down method: the k-th smallest of n is multiplied by
// n-k+1, and no corrected value is smaller than the one before. It bounds the probability of any false
// alarm in the family.
func Holm(p []float64) []float64 {
	sorted, places, adjusted := slices.Clone(p), make([]int, len(p)), make([]float64, len(p))
	floats.Argsort(sorted, places)
	floor := 0.0
	for rank, i := range places {
		floor = max(floor, min(1, sorted[rank]*float64(len(p)-rank)))
		adjusted[i] = floor
	}
	return adjusted
}

// Correct judges headline changes together: it sets their corrected p values. Changes that cannot be
// judged are left out, because they would lower the power of the others: rows that may not be compared,
// and rows whose trials are too few for any finding. Too few for the correction are left in.
func Correct(headlines []*Change) {
	var family, tested []*Change
	var p, least []float64
	for _, c := range headlines {
		if c.Headline = true; c.Unjudged != NotLimited {
			family = append(family, c)
		}
	}
	for _, c := range family {
		c.Unjudged = fmt.Sprintf("too few trials: %s need %d each",
			units.Plural(len(family), "row"), Needed(len(family), Alpha/2, c.paired))
		if !c.few && 2*c.Least() < Alpha {
			tested, p, least = append(tested, c), append(p, c.P), append(least, 2*c.Least())
		}
	}
	p, least = Holm(p), Holm(least)
	for i, c := range tested {
		if c.Adjusted = p[i]; least[i] < Alpha {
			c.Unjudged = ""
		}
	}
}

// leastP returns the smallest one-sided p value of n trials per side: without blocks, or with blocks of
// two trials per side (the last one with one trial per side if n is odd).
func leastP(n int, blocks bool) float64 {
	if blocks {
		return 1 / (math.Pow(binomial(4, 2), float64(n/2)) * float64(1+n%2))
	}
	return 1 / binomial(2*n, n)
}

// maxNeeded limits the result of Needed. With so many trials the smallest p is below 1e-19.
const maxNeeded = 50

// Needed returns the number of trials per side with which each of family claims can be significant at
// the level alpha.
func Needed(family int, alpha float64, blocks bool) int {
	n := LeastSamples
	for n < maxNeeded && leastP(n, blocks)*float64(max(1, family)) >= alpha {
		n++
	}
	return n
}
