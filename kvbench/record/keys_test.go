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

// pythonKeys are those of a result of the Python benchmark that hold a number each. The keys of its
// summary are compared in package result.
var pythonKeys = strings.Fields(`requests_completed total_tokens_generated total_storage_io_latency
	total_generation_latency multi_turn_cache_hits multi_turn_cache_misses seed`)

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
			for _, key := range pythonKeys {
				numbers(t, key, all[key])
			}
			if r.Recording != nil {
				numbers(t, "validation", all["validation"])
			}
		})
	}
	assert.Zero(t, least.Python().Summary.CacheStats.ReadWriteRatio)
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
