package gate

import (
	"cmp"
	"math"
	"slices"

	"golang.org/x/perf/benchmath"
)

// minSamples is the fewest samples per side that are compared at all. Three against three can never reach p = 0.05: the
// smallest p is 2 of the 20 ways to deal them out, 0.1.
const minSamples = 4

// confidence of the intervals around the medians.
const confidence = 0.95

// Sample is what one side measured.
type Sample struct {
	N      int
	Median float64
	Lo, Hi float64 // of the median's confidence interval, infinite when N is below 6
}

// summarize sorts values.
func summarize(values []float64) Sample {
	if len(values) == 0 {
		return Sample{Median: math.NaN(), Lo: math.Inf(-1), Hi: math.Inf(1)}
	}
	s := benchmath.AssumeNothing.Summary(benchmath.NewSample(values, &benchmath.DefaultThresholds), confidence)
	return Sample{N: len(values), Median: s.Center, Lo: s.Lo, Hi: s.Hi}
}

// differ is the p value of the two-sided Mann-Whitney test; 1 when there is nothing to test.
func differ(old, new []float64) float64 {
	t := &benchmath.DefaultThresholds
	c := benchmath.AssumeNothing.Compare(benchmath.NewSample(old, t), benchmath.NewSample(new, t))
	if math.IsNaN(c.P) {
		return 1
	}
	return c.P
}

// leastP is the smallest p value that m against n samples can give: both extremes of all ways to deal them out.
func leastP(m, n int) float64 {
	ways := 1.0
	for i := 1; i <= min(m, n); i++ {
		ways = ways * float64(m+n-i+1) / float64(i)
	}
	return min(1, 2/ways)
}

// maxNeeded bounds the search of needed; 2/C(2n, n) is below 1e-29 there.
const maxNeeded = 50

// needed is the number of samples per side with which each of family comparisons could be significant.
func needed(family int, alpha float64) int {
	n := minSamples
	for n < maxNeeded && leastP(n, n)*float64(max(1, family)) >= alpha {
		n++
	}
	return n
}

// holm adjusts p values for their number, by Holm's step-down method: the k-th smallest counts times what is left, and
// none counts less than a smaller one. It bounds the chance of a single false alarm in the whole family.
func holm(p []float64) []float64 {
	order := make([]int, len(p))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(p[a], p[b]) })
	adjusted := make([]float64, len(p))
	var floor float64
	for rank, i := range order {
		floor = max(floor, min(1, p[i]*float64(len(p)-rank)))
		adjusted[i] = floor
	}
	return adjusted
}

// loss is how much worse the new median is, as a share of the old one: positive is worse.
func loss(old, new float64, better int) float64 {
	switch {
	case old == new:
		return 0
	case old == 0:
		return math.Inf(1) * sign(-float64(better)*(new-old))
	}
	return -float64(better) * (new - old) / math.Abs(old)
}

func sign(x float64) float64 { return math.Copysign(1, x) }
