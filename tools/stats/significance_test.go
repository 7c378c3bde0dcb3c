package stats

import (
	"math"
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

func TestLeastPIsThatOfTheExactTest(t *testing.T) {
	assert.InDelta(t, 0.1, LeastP(3, 3), 1e-12)
	assert.InDelta(t, 2.0/70, LeastP(4, 4), 1e-12)
	assert.InDelta(t, 2.0/924, LeastP(6, 6), 1e-12)
	assert.InDelta(t, 2.0/210, LeastP(4, 6), 1e-12)
	assert.InDelta(t, 1, LeastP(1, 1), 1e-12)
	// What the test itself says of two samples that do not overlap.
	for n := 1; n <= 12; n++ {
		var a, b []float64
		for i := range n {
			a, b = append(a, float64(i+1)), append(b, float64(100+i))
		}
		tab := build(t, lines("A", "read-B/s", a...), lines("A", "read-B/s", b...))
		assert.InDelta(t, LeastP(n, n), tab.Benchmarks[0].Headline().Cells[1].Change.P, 1e-9,
			"%d against %d", n, n)
	}
}

func TestNeededGrowsWithTheFamily(t *testing.T) {
	assert.Equal(t, 4, Needed(1, 0.05))
	assert.Equal(t, 5, Needed(2, 0.05))
	assert.Equal(t, 6, Needed(20, 0.05))
	assert.Equal(t, 7, Needed(24, 0.05))
	assert.Equal(t, 5, Needed(1, 0.01))
	assert.Equal(t, maxNeeded, Needed(1, 0))
}

func TestRatioIsAShareOfTheOldMedian(t *testing.T) {
	ratio := func(old, new float64) float64 {
		tab := build(t, lines("A", "read-B/s", old), lines("A", "read-B/s", new))
		return tab.Benchmarks[0].Headline().Cells[1].Change.Ratio
	}
	assert.InDelta(t, -0.1, ratio(100, 90), 1e-12)
	assert.InDelta(t, 0.1, ratio(100, 110), 1e-12)
	assert.InDelta(t, -0.5, ratio(-2, -3), 1e-12)
	assert.True(t, math.IsInf(ratio(0, 1), 1))
	assert.True(t, math.IsNaN(ratio(0, 0)))
}

func TestEqualSamplesDoNotDiffer(t *testing.T) {
	tab := build(t, lines("A", "read-B/s", 1, 1, 1, 1), lines("A", "read-B/s", 1, 1, 1, 1))
	assert.Equal(t, 1.0, tab.Benchmarks[0].Headline().Cells[1].Change.P)
}
