package python

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestStorageHealth(t *testing.T) {
	s := &CacheStats{CacheHits: 3, CacheMisses: 7, CacheHitRate: 0.3,
		LatencyMS: map[string]float64{"storage_write_device_p95_ms": 499,
			"storage_read_device_p95_ms": 200}}
	h := NewStorageHealth(s, "latency", new(150.0))
	assert.Equal(t, "FAIL", h.OverallStatus)
	assert.Equal(t, 4, h.TotalCount)
	assert.Equal(t, 1, h.PassedCount, "targets are strict")
	assert.Equal(t, Criterion{"CPU RAM P95 < 150ms", 150.0, 150.0, "ms", false}, h.Criteria[2])
	s.StorageWriteBandwidth = 2.005
	h = NewStorageHealth(s, "throughput", nil)
	assert.Equal(t, StorageHealth{OverallStatus: "PASS", PassedCount: 1, TotalCount: 1,
		Criteria: []Criterion{{"Storage KV Write Bandwidth", ">0", "2.00", "GiB/s", true}},
	}, h, "a direction that the load has not is not judged, and neither is the hit rate")
	h = NewStorageHealth(&CacheStats{}, "throughput", nil)
	assert.Equal(t, "FAIL", h.OverallStatus, "nothing moved")
	assert.Equal(t, 2, h.TotalCount)
	h = NewStorageHealth(&CacheStats{}, "latency", nil)
	assert.Equal(t, StorageHealth{OverallStatus: "PASS", Criteria: []Criterion{}}, h,
		"nothing was judged")
}
