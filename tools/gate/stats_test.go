package gate

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestHolmIsTheTextbookExample(t *testing.T) {
	// Four tests: 0.005·4, 0.01·3, 0.03·2, 0.04·1 and never less than the one before.
	assert.InDeltaSlice(t, []float64{0.03, 0.06, 0.06, 0.02}, holm([]float64{0.01, 0.04, 0.03, 0.005}), 1e-12)
	assert.Equal(t, []float64{1, 1}, holm([]float64{0.9, 0.8}))
	assert.Equal(t, []float64{0.04}, holm([]float64{0.04}))
	assert.Empty(t, holm(nil))
}

func TestLeastPIsThatOfTheExactTest(t *testing.T) {
	assert.InDelta(t, 0.1, leastP(3, 3), 1e-12)
	assert.InDelta(t, 2.0/70, leastP(4, 4), 1e-12)
	assert.InDelta(t, 2.0/924, leastP(6, 6), 1e-12)
	assert.InDelta(t, 2.0/210, leastP(4, 6), 1e-12)
	assert.InDelta(t, 1, leastP(1, 1), 1e-12)
	// What the test itself says of two samples that do not overlap.
	for n := 1; n <= 12; n++ {
		var a, b []float64
		for i := range n {
			a, b = append(a, float64(i)), append(b, float64(100+i))
		}
		assert.InDelta(t, leastP(n, n), differ(a, b), 1e-9, "%d against %d", n, n)
	}
}

func TestNeededGrowsWithTheFamily(t *testing.T) {
	assert.Equal(t, 4, needed(1, 0.05))
	assert.Equal(t, 5, needed(2, 0.05))
	assert.Equal(t, 6, needed(20, 0.05))
	assert.Equal(t, 7, needed(24, 0.05))
	assert.Equal(t, 5, needed(1, 0.01))
	assert.Equal(t, maxNeeded, needed(1, 0))
}

func TestLossFollowsTheDirection(t *testing.T) {
	assert.InDelta(t, 0.1, loss(100, 90, 1), 1e-12)
	assert.InDelta(t, -0.1, loss(100, 110, 1), 1e-12)
	assert.InDelta(t, 0.1, loss(100, 110, -1), 1e-12)
	assert.Zero(t, loss(0, 0, 1))
	assert.True(t, math.IsInf(loss(0, 1, -1), 1), "from none to some of what should be little")
	assert.True(t, math.IsInf(loss(0, 1, 1), -1))
	assert.InDelta(t, 0.5, loss(-2, -3, 1), 1e-12)
}

func TestDifferOfEqualSamplesIsOne(t *testing.T) {
	assert.Equal(t, 1.0, differ([]float64{1, 1, 1, 1}, []float64{1, 1, 1, 1}))
	assert.Equal(t, 1.0, differ(nil, nil))
}

func TestSummaryOfFewSamplesHasNoInterval(t *testing.T) {
	s := summarize([]float64{3, 1, 2})
	assert.Equal(t, 2.0, s.Median)
	assert.True(t, math.IsInf(s.Hi, 1))
	s = summarize([]float64{6, 5, 4, 3, 2, 1})
	assert.Equal(t, Sample{6, 3.5, 1, 6}, s)
	assert.Zero(t, summarize(nil).N)
}
