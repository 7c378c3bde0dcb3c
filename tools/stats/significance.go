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

// Together are tests that are judged together, with the least possible p of each.
type Together struct{ P, Least []float64 }

// Add adds a test.
func (t *Together) Add(p, least float64) { t.P, t.Least = append(t.P, p), append(t.Least, least) }

// Correct adjusts the p values by Holm's method. few marks tests that could not have been
// significant at a level whatever the difference: it corrects the least possible p values in the
// same way.
func (t *Together) Correct(alpha float64) (adjusted []float64, few []bool) {
	for _, p := range Holm(t.Least) {
		few = append(few, p >= alpha)
	}
	return Holm(t.P), few
}

// leastP is the smallest one-sided p value of n trials a side: without turns, or with turns of two
// a side and one of one if n is odd.
func leastP(n int, turns bool) float64 {
	if turns {
		return 1 / (math.Pow(binomial(4, 2), float64(n/2)) * float64(1+n%2))
	}
	return 1 / binomial(2*n, n)
}

// maxNeeded bounds the search of Needed; the least p is below 1e-19 there.
const maxNeeded = 50

// Needed is the number of trials a side with which each of family claims could be significant at a
// level, with turns or without.
func Needed(family int, alpha float64, turns bool) int {
	n := LeastSamples
	for n < maxNeeded && leastP(n, turns)*float64(max(1, family)) >= alpha {
		n++
	}
	return n
}
