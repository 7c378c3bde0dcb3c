package stats

import (
	"math"
	"slices"

	"golang.org/x/perf/benchmath"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"
)

// Confidence of every interval.
const Confidence = 0.95

// LeastSamples is the fewest samples per side that are judged at all. Three against three can never
// reach p = 0.05: the smallest p is 2 of the 20 ways to deal them out, 0.1.
const LeastSamples = 4

// sample sorts a copy.
func sample(values []float64) *benchmath.Sample {
	return benchmath.NewSample(slices.Clone(values), &benchmath.DefaultThresholds)
}

// Variation is the coefficient of variation: standard deviation ÷ mean, not a number below two
// samples.
func Variation(values []float64) float64 {
	mean, deviation := stat.MeanStdDev(values, nil)
	return deviation / math.Abs(mean)
}

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

// LeastP is the smallest p value that m against n samples can give: both extremes of all ways to
// deal them out.
func LeastP(m, n int) float64 {
	ways := 1.0
	for i := 1; i <= min(m, n); i++ {
		ways = ways * float64(m+n-i+1) / float64(i)
	}
	return min(1, 2/ways)
}

// maxNeeded bounds the search of Needed; 2/C(2n, n) is below 1e-29 there.
const maxNeeded = 50

// Needed is the number of samples per side with which each of family comparisons could be
// significant.
func Needed(family int, alpha float64) int {
	n := LeastSamples
	for n < maxNeeded && LeastP(n, n)*float64(max(1, family)) >= alpha {
		n++
	}
	return n
}
