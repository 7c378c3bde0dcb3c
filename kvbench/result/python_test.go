package result

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench/units"
)

func TestStorageHealth(t *testing.T) {
	cpu := NewHistogram(units.Nanoseconds)
	cpu.Record(150e6)
	cache := map[string]any{"cache_hits": int64(3), "cache_misses": int64(7), "cache_hit_rate": 0.3,
		"storage_write_device_p95_ms": 499.0, "storage_read_device_p95_ms": 200.0}
	h := storageHealth(cache, "latency", Histograms{"cpu_read": cpu})
	assert.Equal(t, []any{"FAIL", 1, 4}, []any{h["overall_status"], h["passed_count"],
		h["total_count"]}, "targets are strict")
	assert.Equal(t, map[string]any{"name": "CPU RAM P95 < 150ms", "target": 150.0, "actual": 150.0,
		"unit": "ms", "passed": false}, h["criteria"].([]any)[2])
	cache["tier_storage_write_bandwidth_gbps"] = 2.005
	assert.Equal(t, map[string]any{"overall_status": "PASS", "passed_count": 1, "total_count": 1,
		"criteria": []any{map[string]any{"name": "Storage KV Write Bandwidth", "target": ">0",
			"actual": "2.00", "unit": "GiB/s", "passed": true}}},
		storageHealth(cache, "throughput", nil), "without the direction that the load does not have")
	h = storageHealth(nil, "throughput", nil)
	assert.Equal(t, []any{"FAIL", 2}, []any{h["overall_status"], h["total_count"]}, "nothing moved")
	assert.Equal(t, map[string]any{"overall_status": "PASS", "passed_count": 0, "total_count": 0,
		"criteria": []any{}}, storageHealth(nil, "latency", nil), "there are no numbers")
}

// Counts and rates of ranks are added, ratios follow from the sums, percentiles are left out.
func TestSumPython(t *testing.T) {
	rank, err := ParsePython([]byte(`{"requests_completed": 5, "seed": 42, "summary": {
		"elapsed_time": 2.5, "requests_per_second": 2, "end_to_end_latency_ms": {"p95": 3},
		"cache_stats": {"cache_hits": 3, "cache_misses": 1, "storage_read_device_p95_ms": 7,
			"total_read_bytes": 8, "total_write_bytes": 2, "tier_cpu_read_bandwidth_gbps": 0.5},
		"qos_metrics": {"batch": {"total_requests": 5}}}}`))
	require.NoError(t, err)
	sum := SumPython([]Python{rank, rank})
	for path, want := range map[string]float64{"requests_completed": 10, "seed": 0,
		"summary.elapsed_time": 2.5, "summary.requests_per_second": 4,
		"summary.cache_stats.cache_hits": 6, "summary.cache_stats.cache_hit_rate": 0.75,
		"summary.cache_stats.read_write_ratio":             4,
		"summary.cache_stats.tier_cpu_read_bandwidth_gbps": 1,
		"summary.end_to_end_latency_ms.p95":                0,
		"summary.cache_stats.storage_read_device_p95_ms":   0} {
		assert.Equal(t, want, sum.Number(path), path)
	}
	assert.Nil(t, sum["summary"].(map[string]any)["qos_metrics"])
}
