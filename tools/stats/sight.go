package stats

import (
	"math"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// Sight is a contrast's estimate of a loss, and the losses that it could have found. Losses are
// shares of the old side, negative for a gain.
type Sight struct {
	// Loss is the estimated loss of the new side: the shift at which its ranks have their expected
	// sum (Hodges and Lehmann 1963). For two samples without blocks it is the median of the ratios
	// of all pairs.
	Loss float64
	// AtLeast is a lower bound of the loss at the given level: it exceeds a limit where the p value
	// for that limit is below the level.
	AtLeast float64
	// Sees is the smallest loss that four of five such contrasts detect at that level. Relative to
	// a limit it is added to the limit.
	Sees float64
	// Power is the share of such contrasts that would call a loss of twice the limit larger than
	// the limit. It is 0.8 where Sees is the limit.
	Power float64
}

// found is the detection rate for Sees.
const found = 0.8

// Sight evaluates a contrast for a metric of which more (better 1) or less (-1) is better, at a
// level and a limit.
//
// An alarm needs an estimate that lies beyond the limit by a margin: the distance between these
// trials' estimate and bound, whatever their distribution. The scatter of estimates follows from
// the variance of the values that blocks and sides leave unexplained, with the efficiency of ranks
// for normal values, 3/π. So Power = Φ((distance - margin) / scatter). TestPowerIsWhatIsFound
// compares it with simulated contrasts.
func (c *Contrast) Sight(better int, limit, level float64) Sight {
	nothing := math.Inf(1)
	if len(c.blocks) == 0 {
		return Sight{Loss: math.NaN(), AtLeast: math.NaN(), Sees: nothing}
	}
	reach, estimate := c.reach(), c.estimate(better)
	s := Sight{Loss: c.loss(better, estimate), AtLeast: math.Inf(-1), Sees: nothing}
	if c.Least() >= level {
		return s
	}
	bound := bisect(estimate-2*reach, estimate, func(d float64) bool {
		return c.p(better, d) < level
	})
	s.AtLeast = c.loss(better, bound)
	margin, scatter := estimate-bound, c.scatter()
	if math.IsNaN(scatter) {
		return s
	}
	s.Sees = c.loss(better, margin+scatter*distuv.UnitNormal.Quantile(found))
	if scatter > 0 { // else all values are zero, and so is the limit: nothing exceeds it
		s.Power = distuv.UnitNormal.CDF((c.depth(better, limit) - margin) / scatter)
	}
	return s
}

// estimate is the depth of the new side below the old one: the middle of the depths at which the
// sum of ranks is the expected one.
func (c *Contrast) estimate(better int) float64 {
	excess := func(depth float64) (x float64) {
		for _, d := range c.ranks(better, depth) {
			new, all := d.sums()
			x += float64(new) - float64(all)*float64(d.new)/float64(len(d.ranks))
		}
		return x
	}
	reach := c.reach()
	from := bisect(-reach, reach, func(d float64) bool { return excess(d) < 0 })
	to := bisect(-reach, reach, func(d float64) bool { return excess(d) <= 0 })
	return (from + to) / 2
}

// reach is a depth beyond which the sides cannot overlap.
func (c *Contrast) reach() float64 {
	least, most := math.Inf(1), math.Inf(-1)
	for _, t := range c.blocks {
		for _, v := range append(t.old[:len(t.old):len(t.old)], t.new...) {
			least, most = min(least, v), max(most, v)
		}
	}
	return 2*(most-least) + 100*c.alike()
}

// bisect finds where holds changes between two depths, to a billionth of their distance.
func bisect(lo, hi float64, holds func(float64) bool) float64 {
	for range 30 {
		if mid := (lo + hi) / 2; holds(mid) {
			lo = mid
		} else {
			hi = mid
		}
	}
	return (lo + hi) / 2
}

// scatter is the standard error of an estimate, NaN with too few trials.
func (c *Contrast) scatter() float64 {
	weights, between := 0.0, 0.0
	for _, t := range c.blocks {
		w := t.weight()
		weights += w
		between += w * (stat.Mean(t.new, nil) - stat.Mean(t.old, nil))
	}
	between /= weights
	squares := 0.0
	for _, t := range c.blocks {
		// Without the difference of the sides what remains scatters around the block's mean.
		all := append(t.old[:len(t.old):len(t.old)], t.new...)
		for i := range all[len(t.old):] {
			all[len(t.old)+i] -= between
		}
		_, variance := stat.PopMeanVariance(all, nil)
		squares += variance * float64(len(all))
	}
	free := c.trials() - len(c.blocks) - 1
	if free < 1 {
		return math.NaN()
	}
	// The scatter of equal values is zero, and a division by it has no result.
	return max(c.alike(), math.Sqrt(squares/float64(free)/weights/(3/math.Pi)))
}

// weight is a block's information about the difference: the inverse of its variance in units of one
// trial's.
func (t block) weight() float64 {
	old, new := float64(len(t.old)), float64(len(t.new))
	return old * new / (old + new)
}
