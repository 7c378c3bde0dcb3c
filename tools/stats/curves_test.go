package stats

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
	"kvbench/tools/load"
)

func histogram(values ...int64) *result.Histogram {
	h := result.NewHistogram(units.Nanoseconds)
	for _, v := range values {
		h.Record(v)
	}
	return h
}

func trial(t *testing.T, h *result.Histogram) *load.Record {
	return &load.Record{Result: &result.Result{Histograms: map[string]result.HistogramData{"x": h.Encode()}}}
}

func TestMergeAndShares(t *testing.T) {
	broken := &load.Record{Result: &result.
		Result{Histograms: map[string]result.HistogramData{"x": {Encoding: "?"}}}}
	h := Merge([]*load.Record{trial(t, histogram(1, 3)), {}, broken,
		trial(t, histogram(5, 5, 300))}, "x")
	assert.EqualValues(t, 5, h.Count())
	assert.Nil(t, Merge(nil, "x"))
	ends, shares := Shares([]Octaves{{2: 1, 4: 1, 8: 2, 512: 1}, {1: 3, 4: 1}, {}})
	assert.Equal(t, []float64{1, 2, 4, 8, 16, 32, 64, 128, 256, 512}, ends)
	assert.Equal(t, []float64{0, 0.2, 0.2, 0.4, 0, 0, 0, 0, 0, 0.2}, shares[0])
	assert.Equal(t, []float64{0.75, 0, 0.25, 0, 0, 0, 0, 0, 0, 0}, shares[1])
}

// The curve ends where fewer than ten values lie beyond.
func TestPercentiles(t *testing.T) {
	var values []int64
	for i := range int64(1000) {
		values = append(values, 1000+i)
	}
	nines, curve := Percentiles(histogram(values...))
	assert.InDelta(t, 2, nines[len(nines)-1], 0.001)
	assert.InDelta(t, 1990, curve[len(curve)-1], 4)
	assert.Zero(t, nines[0])
	nines, _ = Percentiles(histogram(1, 2, 3))
	assert.Len(t, nines, 1)
}
