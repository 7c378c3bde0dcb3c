package kvbench

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/tracing"
	"kvbench/tracing/collector"
)

// A trace that was asked for and did not come is told by its absence in numbers, not by absence.
func TestATraceOfASimulatedDeviceIsExplained(t *testing.T) {
	cfg := &Config{Trace: &collector.Options{Level: tracing.LevelBlock}}
	tr := &trial{cfg: cfg, sim: &simulation{}}
	tr.startTracing(t.Context())
	var told tracing.Trace
	require.NoError(t, json.Unmarshal(tr.info.DeviceLatencyTracing, &told))
	assert.Equal(t, tracing.StatusNone, told.Capture.Status)
	assert.Contains(t, told.Capture.Reason, "simulated")
	assert.Nil(t, tr.tracer)
}
