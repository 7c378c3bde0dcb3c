package view

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

func TestMergedAndShares(t *testing.T) {
	broken := &load.Record{Result: &result.
		Result{Histograms: map[string]result.HistogramData{"x": {Encoding: "?"}}}}
	h := merged([]*load.Record{trial(t, histogram(1, 3)), {}, broken,
		trial(t, histogram(5, 5, 300))}, "x")
	assert.EqualValues(t, 5, h.Count())
	assert.Nil(t, merged(nil, "x"))
	traced := func(buckets string) *load.Record {
		return &load.Record{Raw: []byte(`{"device_latency_tracing": {"qd_read": {"buckets": [` + buckets + `]}}}`)}
	}
	kind, ends, shares := traceShares([]*load.Record{traced(`{"range_us": [0, 1], "count": 1},
		{"range_us": [2, 3], "count": 1}`), {}, traced(`{"range_us": [5, 6], "count": 2},
		{"range_us": [300, 301], "count": 1}`)}, "qd_read")
	assert.Equal(t, "queue depth read", kind.Title)
	assert.Equal(t, []float64{2, 4, 8, 16, 32, 64, 128, 256, 512}, ends)
	assert.Equal(t, []float64{0.2, 0.2, 0.4, 0, 0, 0, 0, 0, 0.2}, shares)
	_, ends, _ = traceShares([]*load.Record{{}}, "qd_read")
	assert.Empty(t, ends)
}

// The curve ends where fewer than ten values lie beyond.
func TestPercentiles(t *testing.T) {
	var values []int64
	for i := range int64(1000) {
		values = append(values, 1000+i)
	}
	nines, curve := percentiles(histogram(values...))
	assert.InDelta(t, 2, nines[len(nines)-1], 0.001)
	assert.InDelta(t, 1990, curve[len(curve)-1], 4)
	assert.Zero(t, nines[0])
	nines, _ = percentiles(histogram(1, 2, 3))
	assert.Len(t, nines, 1)
}
