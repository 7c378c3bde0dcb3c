package record

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench/result"
	"kvbench/kvbench/result/python"
	"kvbench/workloads"
	"kvbench/workloads/users"
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

// asJSON is a result as its readers see it.
func asJSON(t *testing.T, r *result.Result) map[string]any {
	t.Helper()
	data, err := r.EncodePython()
	require.NoError(t, err)
	var all map[string]any
	require.NoError(t, json.Unmarshal(data, &all))
	return all
}

// lookUp follows a path of keys, every one of which must be there.
func lookUp(t *testing.T, all any, path string) any {
	t.Helper()
	for k := range strings.SplitSeq(path, ".") {
		m, ok := all.(map[string]any)
		require.True(t, ok, path)
		all, ok = m[k]
		require.True(t, ok, "%s is missing", path)
	}
	return all
}

// numbers says where something below a value is no number, but for the words and flags that
// the Python benchmark has.
func numbers(t *testing.T, path string, v any) {
	t.Helper()
	switch v := v.(type) {
	case map[string]any:
		for k, x := range v {
			numbers(t, path+"."+k, x)
		}
	case []any:
		for _, x := range v {
			numbers(t, path+"[]", x)
		}
	case float64, bool:
	case string:
		assert.Regexp(t, `\.(overall_status|name|target|actual|unit|timestamp|mode|action)$`, path)
	default:
		assert.Fail(t, "no number", "%s is %v", path, v)
	}
}

func TestEveryKeyOfThePythonBenchmark(t *testing.T) {
	all := asJSON(t, fixtureResult())
	for _, path := range pythonKeys {
		lookUp(t, all, path)
	}
	criteria := lookUp(t, all, "summary.cache_stats.storage_health.criteria").([]any)
	for _, k := range strings.Fields("name target actual unit passed") {
		assert.Contains(t, criteria[0], k)
	}
}

// The Python project's aggregation adds numbers up and fails on null; its spreadsheet leaves an
// empty cell. Both read what is here: without an autoscaler its summary is null, as there.
func TestThePythonKeysHoldNumbers(t *testing.T) {
	small := Info{QoS: users.Default().QoS}
	small.Tiers = []result.Tier{{Level: "storage"}}
	rec := openRecorder(1, time.Second)
	rec.Request(RequestSample{Class: workloads.Batch,
		Time: result.RequestTime{EndToEnd: 1e6}})
	least := Build(small, rec)
	for name, r := range map[string]*result.Result{"whole": fixtureResult(),
		"autoscaled, recorded": partsResult(), "one request without I/O": least} {
		t.Run(name, func(t *testing.T) {
			all := asJSON(t, r)
			summary := lookUp(t, all, "summary").(map[string]any)
			if r.Autoscaler == nil {
				assert.Nil(t, summary["autoscaling_summary"])
				delete(summary, "autoscaling_summary")
			}
			numbers(t, "summary", summary)
			for _, key := range pythonKeys[:7] {
				numbers(t, key, all[key])
			}
			if r.Recording != nil {
				numbers(t, "validation", all["validation"])
			}
		})
	}
	assert.Zero(t, least.Python().Summary.CacheStats.ReadWriteRatio)
}

// What our own sections tell apart, the Python benchmark's totals leave out: demotions and what the
// window's end cut off.
func TestPythonTotalsAreThoseOfRequests(t *testing.T) {
	r := fixtureResult()
	c := r.Python().Summary.CacheStats
	var reads, writes int64
	for i := range 1200 {
		reads += 2 * fixtureSize(i)
		writes += fixtureSize(i)
	}
	assert.Equal(t, reads+240<<20, c.TotalReadBytes, "probes, re-reads and prefixes")
	assert.Equal(t, writes, c.TotalWriteBytes)
	assert.EqualValues(t, 2640, c.ReadIOPS)
	assert.EqualValues(t, 1200, c.WriteIOPS)
	assert.InDelta(t, float64(c.TotalReadBytes)/float64(writes), c.ReadWriteRatio, 1e-12)
	var moved int64
	for _, tier := range r.Tiers {
		moved += tier.Read.Bytes + tier.Write.Bytes
	}
	assert.Greater(t, moved, reads+writes, "with demotions")
	assert.InDelta(t, 30e9/float64(moved), *r.Harness.CPUNSPerByte, 1e-12,
		"what cost the harness something is every byte")
	p := r.Python().Summary.PrefixCacheStats
	assert.Equal(t, python.PrefixCacheStats{PrefixHits: 240, SystemPromptReuse: 240,
		PrefixMisses: 3*410 - 240, BytesSaved: 240 << 20}, p)
}

// The rounds of an autoscaler that changed something are the Python benchmark's events.
func TestScaleEvents(t *testing.T) {
	r := partsResult()
	s, events := r.Python().Summary.AutoscalingSummary, r.Python().Summary.AutoscalingStats
	require.NotNil(t, s)
	assert.Equal(t, python.ScaleSummary{InitialUsers: 10, FinalUsers: 48, Events: 19,
		PeakUsers: new(40), PeakThroughput: new(1500.0)}, *s)
	require.Len(t, events, 19, "20 rounds, of which one held")
	assert.Equal(t, python.ScaleEvent{Timestamp: "2026-03-04T05:06:37.000008Z", Mode: "capacity",
		Action: "scale_up", Users: 16, Saturation: 0.5, ReadP95: 40.5, WriteP95: 61.25,
		Throughput: 200}, events[2])
	assert.Equal(t, "stop", events[18].Action)
	assert.Equal(t, new(1500.0), events[18].PeakThroughput)
	r.Autoscaler.Mode = result.AutoscaleQoS
	s = r.Python().Summary.AutoscalingSummary
	assert.Nil(t, s.PeakUsers, "of capacity mode")
}

// The Python benchmark's hit rate counts re-reads; the record's is 0.80.
func TestPythonValidation(t *testing.T) {
	r := partsResult()
	v := r.Python().Validation
	require.NotNil(t, v)
	rate := r.Python().Summary.CacheStats.CacheHitRate
	off := 100 * (rate - 0.80) / 0.80
	assert.Equal(t, python.ValidationCheck{Benchmark: rate, Trace: 0.80,
		ErrorPct: v.AvgError, Within: false}, v.Comparison.CacheHitRate)
	assert.InDelta(t, off, v.AvgError, 1e-9)
	assert.False(t, v.Passed)
	assert.Equal(t, r.Recording.Stats, v.TraceStats)
	r.Recording.HitRate.Recorded = nil
	assert.Nil(t, r.Python().Validation, "nothing to compare with")
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
	assert.Equal(t, want.Python(), got.Python())
	info, err := os.Stat(path)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o644), info.Mode().Perm())
}
