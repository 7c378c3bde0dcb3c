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

// TestTraceJSON pins the names and the form that readers rely on.
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
