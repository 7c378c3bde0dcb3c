package stats

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

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
	d, err := h.Encode()
	require.NoError(t, err)
	return &load.Record{Result: &result.Result{Histograms: map[string]result.HistogramData{"x": d}}}
}

func TestMergeAndOctaves(t *testing.T) {
	broken := &load.Record{Result: &result.
		Result{Histograms: map[string]result.HistogramData{"x": {Encoding: "?"}}}}
	h := Merge([]*load.Record{trial(t, histogram(1, 3)), {}, broken,
		trial(t, histogram(5, 5, 300))}, "x")
	assert.EqualValues(t, 5, h.Count())
	assert.Equal(t, []Bucket{{1, 2, 1}, {2, 4, 1}, {4, 8, 2}, {8, 16, 0}, {16, 32, 0}, {32, 64, 0},
		{64, 128, 0}, {128, 256, 0}, {256, 512, 1}}, Octaves(h))
	assert.Nil(t, Merge(nil, "x"))
	assert.Nil(t, Octaves(nil))
}

// The curve ends where fewer than ten values lie beyond.
func TestPercentiles(t *testing.T) {
	var values []int64
	for i := range int64(1000) {
		values = append(values, 1000+i)
	}
	curve := Percentiles(histogram(values...))
	last := curve[len(curve)-1]
	assert.InDelta(t, 0.99, last.Share, 0.001)
	assert.InDelta(t, 1990, last.Value, 4)
	assert.Equal(t, 0.0, curve[0].Share)
	assert.Len(t, Percentiles(histogram(1, 2, 3)), 1)
	assert.InDelta(t, 2, Nines(0.99), 1e-9)
}
