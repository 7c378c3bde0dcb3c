package result

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestUnknownNumbersAreNotJudged(t *testing.T) {
	c := NewCheck(nil, new(0.5))
	assert.Nil(t, c.Passed)
	c = NewCheck(new(0.0), new(0.04))
	assert.True(t, *c.Passed)
	c = NewCheck(new(2.0), new(1.89))
	assert.False(t, *c.Passed)
	assert.InDelta(t, -0.055, *c.Difference, 1e-9)
}

func TestBlockRatios(t *testing.T) {
	tl := &Timeline{IntervalNS: 5e8, Blocks: []int64{10, 0, 10, 20, 10},
		BlockHits:  []int64{0, 0, 5, 15, 10},
		BlockIdeal: []*int64{new(int64(2)), new(int64(0)), new(int64(8)), nil, new(int64(10))}}
	nan := math.NaN()
	equal := func(want, got []float64) {
		t.Helper()
		require.Len(t, got, len(want))
		for i := range want {
			if math.IsNaN(want[i]) {
				assert.True(t, math.IsNaN(got[i]), "%d: %v", i, got[i])
			} else {
				assert.InDelta(t, want[i], got[i], 1e-12, "%d", i)
			}
		}
	}
	r := tl.BlockRatios(100)
	equal([]float64{0, 0.5, 1, 1.5, 2}, r.At)
	equal([]float64{0, nan, 0.5, 0.75, 1}, r.Hit)
	equal([]float64{0.2, nan, 0.8, nan, 1}, r.Ideal)
	equal([]float64{0, 0, 0.25, 0.5, 0.6}, r.HitSoFar)
	equal([]float64{0.2, 0.2, 0.5, nan, nan}, r.IdealSoFar)
	r = tl.BlockRatios(2) // three intervals each
	equal([]float64{0, 1.5}, r.At)
	equal([]float64{0.25, 25.0 / 30}, r.Hit)
	equal([]float64{0.5, nan}, r.Ideal)
	assert.Nil(t, (*Timeline)(nil).BlockRatios(10))
	assert.Nil(t, (&Timeline{IntervalNS: 1}).BlockRatios(10))
}
