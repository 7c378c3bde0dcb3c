package result

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestStorageHealth(t *testing.T) {
	s := &CacheStats{CacheHitRate: new(0.3),
		LatencyMS: map[string]float64{"storage_write_device_p95_ms": 499,
			"storage_read_device_p95_ms": 200, "cpu_read_p95_ms": 3, "cpu_write_p95_ms": 151}}
	h := NewStorageHealth(s, "latency")
	assert.Equal(t, "FAIL", h.OverallStatus)
	assert.Equal(t, 4, h.TotalCount)
	assert.Equal(t, 1, h.PassedCount, "targets are strict")
	assert.InDelta(t, 151, h.Criteria[2].Actual, 1e-9, "the worse direction of the cpu tier")
	h = NewStorageHealth(&CacheStats{StorageReadBandwidth: new(2.0), CacheHitRate: new(0.9)},
		"throughput")
	assert.Equal(t, "PASS", h.OverallStatus)
	assert.Equal(t, 2, h.TotalCount)
	assert.Equal(t, "NO DATA", NewStorageHealth(&CacheStats{}, "latency").OverallStatus)
}
