package stats

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestHolmIsTheTextbookExample(t *testing.T) {
	// Four tests: 0.005·4, 0.01·3, 0.03·2, 0.04·1 and never less than the one before.
	assert.InDeltaSlice(t, []float64{0.03, 0.06, 0.06, 0.02},
		Holm([]float64{0.01, 0.04, 0.03, 0.005}), 1e-12)
	assert.Equal(t, []float64{1, 1}, Holm([]float64{0.9, 0.8}))
	assert.Equal(t, []float64{0.04}, Holm([]float64{0.04}))
	assert.Empty(t, Holm(nil))
}

func TestTogetherKnowsWhatCouldNotBeFound(t *testing.T) {
	var all Together
	all.Add(1.0/70, 1.0/70)
	all.Add(0.9, 1.0/70)
	adjusted, few := all.Correct(0.05)
	assert.InDeltaSlice(t, []float64{2.0 / 70, 0.9}, adjusted, 1e-12)
	assert.Equal(t, []bool{false, false}, few)
	for range 2 {
		all.Add(0.9, 1.0/70)
	}
	_, few = all.Correct(0.05)
	assert.Equal(t, []bool{true, true, true, true}, few, "4 of 70 is more than 0.05")
}

func TestNeededGrowsWithTheFamily(t *testing.T) {
	assert.Equal(t, 4, Needed(1, 0.05, false))
	assert.Equal(t, 4, Needed(3, 0.05, false))
	assert.Equal(t, 5, Needed(4, 0.05, false))
	assert.Equal(t, 6, Needed(19, 0.05, false))
	assert.Equal(t, 4, Needed(1, 0.05, true))
	assert.Equal(t, 6, Needed(4, 0.05, true))
	assert.Equal(t, 7, Needed(19, 0.05, true))
	for n := LeastSamples; n < 10; n++ {
		for _, turns := range []bool{false, true} {
			a, b := apartCells(n, turns)
			assert.InDelta(t, leastP(n, turns), NewContrast(a, b).Least(), 1e-12)
			assert.InDelta(t, leastP(n, turns), NewContrast(a, b).P(1, 0.05), 1e-12)
		}
	}
}
