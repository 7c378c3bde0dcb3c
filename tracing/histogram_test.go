package tracing

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestNoSamplesAreNoHistogram(t *testing.T) {
	assert.Zero(t, NewHistogram("us", 0, nil))
	assert.True(t, math.IsNaN((Histogram{}).Percentile(50)))
}

// TestTraceJSON pins the keys and the format for readers.
func TestTraceJSON(t *testing.T) {
	in := []Bucket{{Range: [2]float64{0.272, 0.288}, Count: 2}}
	tr := Trace{Histograms: Histograms{D2CRead: NewHistogram("us", 0.5, in)},
		Capture: Capture{Status: StatusTraced}}
	text, err := json.Marshal(tr)
	require.NoError(t, err)
	var doc map[string]any
	require.NoError(t, json.Unmarshal(text, &doc))
	require.Len(t, doc, 2)
	assert.Contains(t, doc, "capture")
	assert.Equal(t, []any{map[string]any{"range_us": []any{0.272, 0.288}, "count": 2.0}},
		doc["d2c_read_us"].(map[string]any)["buckets"])
	var back Trace
	require.NoError(t, json.Unmarshal(text, &back))
	assert.Equal(t, tr, back)
}

// An edited result is refused.
func TestBucketsAreWhatIsCounted(t *testing.T) {
	at := func(low, high float64, n int64) Bucket {
		return Bucket{Range: [2]float64{low, high}, Count: n}
	}
	require.NoError(t, Histogram{}.Check())
	require.NoError(t, NewHistogram("us", 30, []Bucket{at(1, 2, 3), at(4, 8, 5)}).Check())
	for why, h := range map[string]Histogram{
		"the count is 9, but the buckets have 8 samples": {Count: 9,
			Buckets: []Bucket{at(1, 2, 3), at(4, 8, 5)}},
		"the count is 3, but the buckets have 0 samples": {Count: 3},
		"bucket 1, [4, 8) with -5 samples, is empty":     {Buckets: []Bucket{at(1, 2, 5), at(4, 8, -5)}},
		"bucket 1, [1.5, 8) with 5 samples, is empty or out of order": {Count: 8,
			Buckets: []Bucket{at(1, 2, 3), at(1.5, 8, 5)}},
		"bucket 0, [2, 2) with 1 samples, is empty": {Count: 1, Buckets: []Bucket{at(2, 2, 1)}},
	} {
		assert.ErrorContains(t, h.Check(), why)
	}
}
