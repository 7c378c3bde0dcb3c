package record

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench/result"
)

// pythonKeys is the schema of the Python benchmark that its tools read, as paths. Its arrays of
// single latencies are not among them.
var pythonKeys = func() []string {
	keys :=
		strings.Fields(
			`requests_completed total_tokens_generated total_storage_io_latency
			total_generation_latency
		multi_turn_cache_hits multi_turn_cache_misses seed summary`)
	in := func(prefix, names string) {
		for _, n := range strings.Fields(names) {
			keys = append(keys, prefix+"."+n)
		}
	}
	in("summary",
		`total_requests total_tokens elapsed_time avg_throughput_tokens_per_sec
		total_storage_io_time
		storage_throughput_tokens_per_sec requests_per_second cache_stats qos_metrics
		autoscaling_stats autoscaling_summary`)
	for _, l := range strings.Fields("end_to_end_latency_ms storage_io_latency_ms " +
		"generation_latency_ms") {
		in("summary."+l, "mean p50 p95 p99 p999 p9999")
	}
	in("summary.prefix_cache_stats",
		"prefix_hits prefix_misses system_prompt_reuse common_phrase_reuse bytes_saved")
	in("summary.multi_turn_stats", "cache_hits cache_misses hit_rate")
	const c = "summary.cache_stats"
	in(c,
		`cache_hit_rate cache_hits cache_misses gpu_entries cpu_entries storage_entries
		gpu_memory_used_gb cpu_memory_used_gb
		offloads_cpu offloads_storage prefill_writes decode_reads
		tier_gpu_kv_bytes_written_gb tier_cpu_kv_bytes_written_gb tier_storage_kv_bytes_written_gb
		tier_gpu_kv_bytes_read_gb tier_cpu_kv_bytes_read_gb tier_storage_kv_bytes_read_gb
		tier_gpu_read_bandwidth_gbps tier_gpu_write_bandwidth_gbps tier_cpu_read_bandwidth_gbps
		tier_cpu_write_bandwidth_gbps
		tier_storage_read_bandwidth_gbps tier_storage_write_bandwidth_gbps
		system_prompt_hits common_phrase_hits user_cache_hits multi_turn_hits total_read_bytes
		total_write_bytes
		total_read_gb total_write_gb read_write_ratio read_iops write_iops
		storage_tokens_processed`)
	in(c+".storage_health", "overall_status criteria passed_count total_count")
	for _, name := range strings.Fields(
		`cpu_write storage_read storage_read_device storage_read_host storage_write_device`) {
		for _, p := range strings.Fields("p50 p95 p99 p999 p9999") {
			keys = append(keys, c+"."+name+"_"+p+"_ms")
		}
	}
	for _, class := range strings.Fields("interactive responsive batch") {
		in("summary.qos_metrics."+class, "total_requests")
		in("summary.qos_metrics."+class+".latency_ms", "mean p50 p95 p99 max")
		in("summary.qos_metrics."+class+".sla", "target_p95_ms actual_p95_ms compliance met")
	}
	return keys
}()

func TestEveryKeyOfThePythonBenchmark(t *testing.T) {
	data, err := json.Marshal(fixtureResult())
	require.NoError(t, err)
	var all map[string]any
	require.NoError(t, json.Unmarshal(data, &all))
	for _, path := range pythonKeys {
		var at any = all
		for _, k := range strings.Split(path, ".") {
			m, ok := at.(map[string]any)
			require.True(t, ok, path)
			at, ok = m[k]
			require.True(t, ok, "%s is missing", path)
		}
	}
	var criterion any = all
	for _, k := range []string{"summary", "cache_stats", "storage_health"} {
		criterion = criterion.(map[string]any)[k]
	}
	criterion = criterion.(map[string]any)["criteria"].([]any)[0]
	for _, k := range strings.Fields("name target actual unit passed") {
		assert.Contains(t, criterion, k)
	}
}

func TestResultRoundTrip(t *testing.T) {
	want := fixtureResult()
	path := filepath.Join(t.TempDir(), "result.json")
	require.NoError(t, want.WriteJSON(path))
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	got, err := result.Parse(text)
	require.NoError(t, err)
	a, err := json.Marshal(want)
	require.NoError(t, err)
	b, err := json.Marshal(got)
	require.NoError(t, err)
	assert.JSONEq(t, string(a), string(b))
	assert.Equal(t, want.Metrics(), got.Metrics(), "views are made from what the file holds")
	assert.Equal(t, want.Summary.CacheStats.LatencyMS, got.Summary.CacheStats.LatencyMS)
	info, err := os.Stat(path)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o644), info.Mode().Perm())
}
