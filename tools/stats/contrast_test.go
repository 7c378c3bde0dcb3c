package stats

import (
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
)

// apartCells are n trials a side, the new ones half as good, with blocks or without.
func apartCells(n int, blocks bool) (old, new Side) {
	for i := range n {
		block := ""
		if blocks {
			block = fmt.Sprint(i / 2)
		}
		old.Add(100+float64(i), block)
		new.Add(50+float64(i)/2, block)
	}
	return old, new
}

// drawn are cells of small whole numbers, so that many are equal, in blocks of random sizes.
func drawn(r *rand.Rand, blocks int) (old, new Side) {
	for block := range blocks {
		for range 1 + r.IntN(3) {
			old.Add(float64(1+r.IntN(6)), fmt.Sprint(block))
		}
		for range 1 + r.IntN(3) {
			new.Add(float64(1+r.IntN(6)), fmt.Sprint(block))
		}
	}
	return old, new
}

// permutations counts all permutations of each block's ranks, and those with at most the actual sum.
func permutations(list []permuted, target int) (upTo, all int) {
	if len(list) == 0 {
		return map[bool]int{true: 1}[target >= 0], 1
	}
	d := list[0]
	for set := range uint(1) << len(d.ranks) {
		if bits.OnesCount(set) != d.new {
			continue
		}
		sum := 0
		for i, rank := range d.ranks {
			if set>>i&1 == 1 {
				sum += rank
			}
		}
		n, m := permutations(list[1:], target-sum)
		upTo, all = upTo+n, all+m
	}
	return upTo, all
}

func TestPIsTheShareOfAllPermutations(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		old, new := drawn(r, 1+r.IntN(3))
		c := NewContrast(old, new)
		for _, better := range []int{1, -1} {
			for _, loss := range []float64{-0.5, 0, 0.05, 0.5} {
				list, target := c.ranks(better, c.depth(better, loss)), 0
				for _, d := range list {
					sum, _ := d.sums()
					target += sum
				}
				upTo, all := permutations(list, target)
				assert.InDelta(t, float64(upTo)/float64(all), c.P(better, loss), 1e-12,
					"%v %v", old, new)
			}
		}
	}
}

func TestPOfManyTrialsIsThatOfTheNormalDistribution(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for _, blocks := range []bool{false, true} {
		for range 20 {
			var old, new Side
			for i := range mostExact / 2 {
				block := ""
				if blocks {
					block = fmt.Sprint(i / 2)
				}
				old.Add(100+r.NormFloat64(), block)
				new.Add(100-r.Float64()+r.NormFloat64(), block)
			}
			c := NewContrast(old, new)
			assert.InDelta(t, c.P(1, 0), approximate(c.ranks(1, 0)), 0.005)
		}
	}
}

// Changes from block to block are in no comparison.
func TestBlocksTakeOutWhatDrifts(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	var still, drifting [2]Side
	for i := range 16 {
		v := 100 * (1 + 0.03*r.NormFloat64())
		block := fmt.Sprint(i / 4)
		still[i%2].Add(v, block)
		drifting[i%2].Add(v*math.Exp(float64(i/4)), block)
	}
	a, b := NewContrast(still[0], still[1]), NewContrast(drifting[0], drifting[1])
	assert.InDelta(t, a.P(1, 0.01), b.P(1, 0.01), 1e-12)
	assert.InDelta(t, a.Sight(1, 0, 0.05).Loss, b.Sight(1, 0, 0.05).Loss, 1e-6)
	x, y := a.Sight(1, 0.05, 0.05), b.Sight(1, 0.05, 0.05)
	assert.InDelta(t, x.Sees, y.Sees, 1e-6)
	assert.InDelta(t, x.Power, y.Power, 1e-6)
}

func TestSightOfALoss(t *testing.T) {
	old, new := Side{}, Side{}
	for i := range 6 {
		old.Add(100+float64(i), "")
		new.Add(0.9*(100+float64(i)), "")
	}
	c := NewContrast(old, new)
	for _, better := range []int{1, -1} {
		want := map[int]float64{1: 0.1, -1: -0.1}[better]
		s := c.Sight(better, 0.05, 0.05)
		assert.InDelta(t, want, s.Loss, 1e-6)
		assert.Less(t, s.AtLeast, s.Loss)
		assert.Positive(t, s.Sees)
		// The bound is where the test's p value crosses the level.
		assert.Less(t, c.P(better, s.AtLeast-1e-6), 0.05)
		assert.GreaterOrEqual(t, c.P(better, s.AtLeast+1e-6), 0.05)
		at := c.Sight(better, s.Sees, 0.05).Power
		assert.InDelta(t, 0.8, at, 1e-6, "what is seen at the limit is found in four of five")
	}
	few := NewContrast(Side{Values: []float64{1, 2, 3}}, Side{Values: []float64{1, 2, 3}})
	assert.True(t, math.IsInf(few.Sight(1, 0.05, 0.05).Sees, 1))
}

// Nothing, or less than nothing, has no logarithm.
func TestLossFromNothing(t *testing.T) {
	zeros, fives := Side{Values: make([]float64, 6)}, Side{Values: []float64{5, 5, 5, 5, 5, 5}}
	c := NewContrast(zeros, fives)
	assert.InDelta(t, 1.0/924, c.P(-1, 0.05), 1e-12, "some of what should be little")
	assert.True(t, math.IsInf(c.Sight(-1, 0.05, 0.05).Loss, 1))
	assert.InDelta(t, 1, c.P(1, 0.05), 1e-12)
	nothing := NewContrast(zeros, zeros).Sight(1, 0.05, 0.05)
	assert.Equal(t, Sight{}, nothing, "no number of it is none")
	same := NewContrast(fives, fives)
	assert.Zero(t, math.Round(1e6*same.Sight(1, 0.05, 0.05).Sees))
	below := NewContrast(Side{Values: []float64{-2, -2.1, -2.2, -2.3}},
		Side{Values: []float64{-4, -4.1, -4.2, -4.3}})
	assert.InDelta(t, 2/2.15, below.Sight(1, 0, 0.05).Loss, 1e-6)
	assert.InDelta(t, 1, NewContrast(fives, fives).P(1, 1.5), 0, "a loss is at most 100 %")
}
