package stats

import (
	"cmp"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat/distuv"

	"kvbench/kvbench/units"
)

// Contrast compares the trials of an old side and a new side. If the sides were measured in blocks, it
// compares trials only within a block, so that drift between blocks does not count. It is immutable and
// safe for concurrent use.
//
// If all values are positive, it compares their logarithms, so that a difference is a ratio. Otherwise
// it compares the values. A depth is a difference on that scale; a positive depth is worse.
type Contrast struct {
	blocks []block
	paired bool // values are compared within blocks
	logs   bool
	centre float64 // absolute median of the old side, the base of losses if values are not logarithms
}

// block has the values of both sides of one block. Without blocks one block has all values.
type block struct{ old, new []float64 }

// Side has the values of one side.
type Side struct {
	Values []float64
	Blocks []string // by value, if all values have a block
}

// Add adds a value. block is "" for a value without a block.
func (s *Side) Add(v float64, block string) {
	s.Values = append(s.Values, v)
	if block != "" {
		s.Blocks = append(s.Blocks, block)
	}
}

// InBlocks reports whether each value has a block.
func (s Side) InBlocks() bool { return len(s.Blocks) > 0 && len(s.Blocks) == len(s.Values) }

// NewContrast compares two sides, within blocks if each value of both sides has a block. It leaves out a
// block with values of only one side.
func NewContrast(old, new Side) *Contrast {
	middle, _ := units.Median(old.Values)
	c := &Contrast{logs: true, centre: math.Abs(middle)}
	for _, v := range slices.Concat(old.Values, new.Values) {
		c.logs = c.logs && v > 0
	}
	places := map[string]int{}
	c.paired = old.InBlocks() && new.InBlocks()
	for side, cell := range []Side{old, new} {
		for i, v := range cell.Values {
			name := ""
			if c.paired {
				name = cell.Blocks[i]
			}
			at, known := places[name]
			if !known {
				at = len(c.blocks)
				places[name], c.blocks = at, append(c.blocks, block{})
			}
			if c.logs {
				v = math.Log(v)
			}
			if t := &c.blocks[at]; side == 0 {
				t.old = append(t.old, v)
			} else {
				t.new = append(t.new, v)
			}
		}
	}
	c.blocks = slices.DeleteFunc(c.blocks, func(t block) bool {
		return len(t.old) == 0 || len(t.new) == 0
	})
	return c
}

// depth returns the depth of a loss (a share), +Inf for a loss of 100 % or more.
func (c *Contrast) depth(better int, loss float64) float64 {
	if !c.logs {
		return loss * c.centre
	}
	d := float64(better)
	if left := 1 - d*loss; left > 0 {
		return -d * math.Log(left)
	}
	return math.Inf(1)
}

// loss returns the loss of a depth, as a share of the old side; a gain is negative. It is infinite if
// the old side is 0.
func (c *Contrast) loss(better int, depth float64) float64 {
	switch {
	case depth == 0:
		return 0
	case !c.logs:
		return depth / c.centre
	case better > 0:
		return -math.Expm1(-depth)
	}
	return math.Expm1(depth)
}

// alike returns the difference below which two values count as equal: 1e-9, above rounding errors.
func (c *Contrast) alike() float64 {
	if c.logs {
		return 1e-9
	}
	return 1e-9 * c.centre
}

// permuted has the ranks of a block's values among the values of all blocks. Ranks are doubled, so that
// mean ranks are integers. The first new ranks are of the new side.
type permuted struct {
	ranks []int
	new   int
}

// sums returns the sum of the new side's ranks and the sum of all ranks.
func (d permuted) sums() (new, all int) {
	for i, rank := range d.ranks {
		all += rank
		if i < d.new {
			new += rank
		}
	}
	return new, all
}

// ranks moves the old side down by a depth and each block by its median, and returns the ranks of all
// values. Equal values get the mean of their ranks.
func (c *Contrast) ranks(better int, depth float64) []permuted {
	type value struct {
		v         float64
		block, at int
	}
	var all []value
	list := make([]permuted, len(c.blocks))
	for t, side := range c.blocks {
		var values []float64
		for _, v := range side.new {
			values = append(values, float64(better)*v)
		}
		for _, v := range side.old {
			values = append(values, float64(better)*v-depth)
		}
		middle, _ := units.Median(values)
		for i, v := range values {
			all = append(all, value{v - middle, t, i})
		}
		list[t] = permuted{make([]int, len(values)), len(side.new)}
	}
	slices.SortFunc(all, func(a, b value) int { return cmp.Compare(a.v, b.v) })
	for i, j := 0, 0; i < len(all); i = j {
		for j = i + 1; j < len(all) && all[j].v-all[j-1].v <= c.alike(); j++ {
		}
		for _, x := range all[i:j] {
			list[x.block].ranks[x.at] = i + 1 + j // twice the mean of i+1 … j
		}
	}
	return list
}

// mostExact is the largest number of trials with exact p values. Above it the error of the normal
// distribution is below 1 % of p.
const mostExact = 64

// P returns the one-sided p value of the claim that the new side is worse than the old one by more than
// loss. With the opposite direction it is the claim that the new side is better.
func (c *Contrast) P(better int, loss float64) float64 { return c.p(better, c.depth(better, loss)) }

func (c *Contrast) p(better int, depth float64) float64 {
	if len(c.blocks) == 0 || math.IsInf(depth, 1) {
		return 1
	}
	list := c.ranks(better, depth)
	if c.trials() > mostExact {
		return approximate(list)
	}
	return exact(list)
}

// trials returns the number of compared trials of both sides.
func (c *Contrast) trials() (n int) {
	for _, t := range c.blocks {
		n += len(t.old) + len(t.new)
	}
	return n
}

// Least returns the smallest p value that this number of trials can give: 1 ÷ the number of permutations
// within blocks. It is 1 if nothing can be compared.
func (c *Contrast) Least() float64 {
	ways := 1.0
	for _, t := range c.blocks {
		ways *= binomial(len(t.old)+len(t.new), len(t.new))
	}
	return 1 / ways
}

// exact returns the share of all permutations within blocks in which the sum of the new side's ranks is
// at most the observed sum.
func exact(list []permuted) float64 {
	most := 0
	for _, d := range list {
		n, _ := d.sums()
		most += n
	}
	// drawn[s] counts the ways to draw the new side's ranks of the blocks so far with the sum s.
	drawn, all := make([]float64, most+1), 1.0
	drawn[0] = 1
	for _, d := range list {
		byCount := [][]float64{drawn} // by the number of ranks drawn from this block
		for range d.new {
			byCount = append(byCount, make([]float64, most+1))
		}
		for i, rank := range d.ranks {
			for k := min(d.new, i+1); k > 0; k-- {
				for sum := most; sum >= rank; sum-- {
					byCount[k][sum] += byCount[k-1][sum-rank]
				}
			}
		}
		drawn, all = byCount[d.new], all*binomial(len(d.ranks), d.new)
	}
	return min(1, floats.Sum(drawn)/all)
}

// approximate returns the same share from a normal distribution with the mean and the variance of the
// sum, with a continuity correction of half a step.
func approximate(list []permuted) float64 {
	distance, variance := 1.0, 0.0
	for _, d := range list {
		n, k, squares := float64(len(d.ranks)), float64(d.new), 0.0
		for _, rank := range d.ranks {
			squares += float64(rank) * float64(rank)
		}
		new, all := d.sums()
		mean := float64(all) / n
		distance += float64(new) - k*mean
		variance += k * (n - k) / (n - 1) * (squares/n - mean*mean)
	}
	if variance <= 0 {
		return 1
	}
	return distuv.UnitNormal.CDF(distance / math.Sqrt(variance))
}

// binomial returns n over k.
func binomial(n, k int) float64 {
	ways := 1.0
	for i := 1; i <= min(k, n-k); i++ {
		ways = ways * float64(n-i+1) / float64(i)
	}
	return ways
}
