package stats

import (
	"math"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// Sight is the estimated loss of a contrast, and the losses that it could find. Losses are shares of
// the old side; a gain is negative.
type Sight struct {
	// Loss is the estimated loss of the new side: the shift at which its rank sum is the expected one
	// (Hodges and Lehmann, 1963). Without blocks it is the median of the ratios of all pairs.
	Loss float64
	// AtLeast is the lower bound of the loss at the level. It exceeds a limit if the p value for that
	// limit is below the level.
	AtLeast float64
	// Sees is the smallest loss that 80 % of such contrasts find at the level. With a limit, the
	// smallest loss is the limit plus Sees.
	Sees float64
	// Power is the share of such contrasts that find a loss of twice the limit to be above the limit. It
	// is 0.8 if Sees equals the limit.
	Power float64
}

// found is the share of contrasts that find the loss Sees.
const found = 0.8

// Sight evaluates the contrast for a metric of which more (better 1) or less (better -1) is better, at
// a level and a limit.
//
// An alarm needs an estimate that exceeds the limit by a margin. The margin is the distance between the
// estimate and its bound, for the distribution of these trials. The scatter of estimates follows from
// the variance that blocks and sides do not explain, with the efficiency of ranks for normal values,
// 3/π. So Power = Φ((distance - margin) / scatter). TestPowerIsWhatIsFound compares it with simulated
// contrasts.
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
	if scatter > 0 { // otherwise all values are 0, and no loss exceeds the limit
		s.Power = distuv.UnitNormal.CDF((c.depth(better, limit) - margin) / scatter)
	}
	return s
}

// estimate returns the depth of the new side below the old one: the middle of the depths at which the
// rank sum is the expected one.
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

// reach returns a depth at which the sides do not overlap.
func (c *Contrast) reach() float64 {
	least, most := math.Inf(1), math.Inf(-1)
	for _, t := range c.blocks {
		for _, v := range append(t.old[:len(t.old):len(t.old)], t.new...) {
			least, most = min(least, v), max(most, v)
		}
	}
	return 2*(most-least) + 100*c.alike()
}

// bisect returns where holds changes between lo (true) and hi (false), to 1e-9 of their distance.
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

// scatter returns the standard error of the estimate, NaN with too few trials.
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
		// Without the difference of the sides, the values scatter around the block's mean.
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
	// Equal values have scatter 0, and a division by it has no result.
	return max(c.alike(), math.Sqrt(squares/float64(free)/weights/(3/math.Pi)))
}

// weight returns a block's information about the difference: 1 ÷ the variance of its difference of
// means, in units of the variance of one trial.
func (t block) weight() float64 {
	old, new := float64(len(t.old)), float64(len(t.new))
	return old * new / (old + new)
}

// Outlook forecasts the contrast of more trials of each side, of which this contrast has the first. It
// says what to expect if the later trials scatter as these do.
type Outlook struct {
	// Sees is the expected Sight.Sees.
	Sees float64
	// Clear is the probability that Sight.Sees is at most the limit.
	Clear float64
	// Worse and Better are the probabilities that the new side is found to be worse by more than the
	// limit, or better.
	Worse, Better float64
}

// Outlook returns the outlook on n trials of each side.
//
// For normal values the variance of the later trials ÷ that of these trials has an F distribution, and
// the estimate of all trials is near the estimate of these trials by Student's t distribution. So the
// probabilities include how little a few trials show of their scatter. The margin of a rank test is
// taken for that of a t test. TestForecastIsWhatComes of package gate compares them with simulations.
func (c *Contrast) Outlook(better, n int, limit, level float64) Outlook {
	times := 2 * float64(n) / float64(c.trials())
	free := float64(c.trials() - len(c.blocks) - 1)
	all := times*(free+1) - 1
	scatter := c.scatter()
	if math.IsNaN(scatter) || scatter == 0 || !(all > free) {
		return Outlook{Sees: math.Inf(1)}
	}
	later := scatter / math.Sqrt(times) // the scatter of the estimate of all trials
	margin := later * distuv.StudentsT{Sigma: 1, Nu: all}.Quantile(1-level)
	sees := margin + later*distuv.UnitNormal.Quantile(found)
	o := Outlook{Sees: c.loss(better, sees)}
	if c.depth(better, limit) > 0 {
		variance := math.Pow(c.depth(better, limit)/sees, 2) // the largest that is clear ÷ that of these
		o.Clear = distuv.F{D1: all - free, D2: free}.CDF(max(0, (all*variance-free)/(all-free)))
	}
	// A difference that is small for its scatter is mostly chance: shrink it (James and Stein, 1961).
	estimate := c.estimate(better)
	estimate *= max(0, 1-math.Pow(scatter/estimate, 2))
	near := distuv.StudentsT{Sigma: scatter * math.Sqrt(1-1/times), Nu: free, Mu: estimate}
	o.Worse = near.Survival(c.depth(better, limit) + margin)
	o.Better = near.CDF(-margin)
	return o
}

// mostAsked is the largest number of trials that a user is asked for.
const mostAsked = 60

// Enough returns the smallest number of trials of each side, more than n, that probably see a loss. It
// is 0 if mostAsked are not enough.
func (c *Contrast) Enough(better, n int, loss, level float64) int {
	for n++; n <= mostAsked; n++ {
		if c.Outlook(better, n, 0, level).Sees <= loss {
			return n
		}
	}
	return 0
}
