package kvbench

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/tracing"
	"kvbench/tracing/collector"
)

// A requested trace that did not happen leaves a reason in the result.
func TestATraceOfASimulatedDeviceIsExplained(t *testing.T) {
	cfg := &Config{Trace: &collector.Options{Level: tracing.LevelBlock}}
	tr := &trial{cfg: cfg, sim: &simulation{}}
	tr.startTracing(t.Context())
	var trace tracing.Trace
	require.NoError(t, json.Unmarshal(tr.info.DeviceLatencyTracing, &trace))
	assert.Equal(t, tracing.StatusNone, trace.Capture.Status)
	assert.Contains(t, trace.Capture.Reason, "simulated")
	assert.Nil(t, tr.tracer)
}
