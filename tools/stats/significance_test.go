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

func TestNeededGrowsWithTheFamily(t *testing.T) {
	assert.Equal(t, 4, Needed(1, 0.05, false))
	assert.Equal(t, 4, Needed(3, 0.05, false))
	assert.Equal(t, 5, Needed(4, 0.05, false))
	assert.Equal(t, 6, Needed(19, 0.05, false))
	assert.Equal(t, 4, Needed(1, 0.05, true))
	assert.Equal(t, 6, Needed(4, 0.05, true))
	assert.Equal(t, 7, Needed(19, 0.05, true))
	for n := LeastSamples; n < 10; n++ {
		for _, blocks := range []bool{false, true} {
			a, b := apartCells(n, blocks)
			assert.InDelta(t, leastP(n, blocks), NewContrast(a, b).Least(), 1e-12)
			assert.InDelta(t, leastP(n, blocks), NewContrast(a, b).P(1, 0.05), 1e-12)
		}
	}
}
