// What is significant: the judgements of two sides of a comparison. Each is about medians, and none
// of them takes samples for normally distributed, because rates of a drive that collects its
// garbage are not.

package stats

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
)

// LeastSamples is the least number of trials per side that are judged. Three against three can
// never be below p = 0.05: the worst of the 20 permutations is 0.05 itself.
const LeastSamples = 4

// Holm adjusts p values for their number, by Holm's step-down method: the k-th smallest counts
// times what is left, and none counts less than a smaller one. It bounds the chance of a single
// false alarm in the whole family.
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

// Correct corrects the p values of changes that are judged together.
func Correct(family []*Change) {
	var p []float64
	for _, c := range family {
		p = append(p, c.P)
	}
	for i, adjusted := range Holm(p) {
		family[i].Adjusted, family[i].Headline = adjusted, true
	}
}

// leastP is the smallest one-sided p value of n trials a side: without blocks, or with blocks of two
// a side and one of one if n is odd.
func leastP(n int, blocks bool) float64 {
	if blocks {
		return 1 / (math.Pow(binomial(4, 2), float64(n/2)) * float64(1+n%2))
	}
	return 1 / binomial(2*n, n)
}

// maxNeeded bounds the search of Needed; the least p is below 1e-19 there.
const maxNeeded = 50

// Needed is the number of trials a side with which each of family claims could be significant at a
// level, with blocks or without.
func Needed(family int, alpha float64, blocks bool) int {
	n := LeastSamples
	for n < maxNeeded && leastP(n, blocks)*float64(max(1, family)) >= alpha {
		n++
	}
	return n
}
