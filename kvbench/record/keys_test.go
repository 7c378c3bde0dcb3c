package record

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench/result"
	"kvbench/workloads"
	"kvbench/workloads/users"
)

// python returns the object under summary or another key of a result's Python keys, as a reader of
// the file sees it.
func python(t *testing.T, r *result.Result, key string) map[string]any {
	t.Helper()
	data, err := r.EncodePython()
	require.NoError(t, err)
	p, err := result.ParsePython(data)
	require.NoError(t, err)
	object, _ := p[key].(map[string]any)
	return object
}

// numbers reports values below v that are neither numbers nor the texts and flags of the Python
// benchmark.
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

// The Python project's aggregation adds numbers and fails on null; its spreadsheet leaves a cell
// empty. Both read these keys. Without an autoscaler its summary is null, as in the Python benchmark.
func TestPythonKeysHoldNumbers(t *testing.T) {
	small := Info{QoS: users.Default().QoS}
	small.Tiers = []result.Tier{{Level: "storage"}}
	rec := openRecorder(1, time.Second)
	rec.Request(RequestSample{Class: workloads.Batch,
		Time: result.RequestTime{EndToEnd: 1e6}})
	least := Build(small, rec)
	for _, r := range []*result.Result{fixtureResult(), partsResult(), least} {
		summary := python(t, r, "summary")
		if r.Autoscaler == nil {
			assert.Nil(t, summary["autoscaling_summary"])
			delete(summary, "autoscaling_summary")
		}
		numbers(t, "summary", summary)
		numbers(t, "validation", python(t, r, "validation"))
	}
	assert.Zero(t, least.Python().Number("summary.cache_stats.read_write_ratio"))
}

// The rounds of an autoscaler that changed the number of users are the Python benchmark's events.
func TestScaleEvents(t *testing.T) {
	s := python(t, partsResult(), "summary")
	assert.Equal(t, map[string]any{"initial_users": 10.0, "final_users": 48.0,
		"total_scale_events": 19.0, "peak_user_count": 40.0,
		"peak_throughput_tokens_per_sec": 1500.0}, s["autoscaling_summary"])
	events := s["autoscaling_stats"].([]any)
	require.Len(t, events, 19, "20 rounds, of which one held")
	assert.Equal(t, map[string]any{"timestamp": "2026-03-04T05:06:37.000008Z", "mode": "capacity",
		"action": "scale_up", "users": 16.0, "saturation_level": 0.5, "read_latency_p95_ms": 40.5,
		"write_latency_p95_ms": 61.25, "throughput_tokens_per_sec": 200.0}, events[2])
	stop := events[18].(map[string]any)
	assert.Equal(t, []any{"stop", 1500.0}, []any{stop["action"],
		stop["peak_throughput_tokens_per_sec"]})
}

// The Python benchmark's hit rate counts re-reads; the recorded one is 0.80.
func TestPythonValidation(t *testing.T) {
	r := partsResult()
	v := python(t, r, "validation")
	rate := r.Python().Number("summary.cache_stats.cache_hit_rate")
	off := 100 * (rate - 0.80) / 0.80
	assert.InDelta(t, off, v["avg_error_pct"], 1e-9)
	assert.Equal(t, map[string]any{"benchmark": rate, "trace": 0.80,
		"error_pct": v["avg_error_pct"], "within_5pct": false},
		v["comparison"].(map[string]any)["cache_hit_rate"])
	assert.Equal(t, false, v["passed"])
	assert.EqualValues(t, 1500, v["trace_stats"].(map[string]any)["context_tokens_mean"])
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
	a, err = json.Marshal(want.Python())
	require.NoError(t, err)
	b, err = json.Marshal(got.Python())
	require.NoError(t, err)
	assert.JSONEq(t, string(a), string(b))
	info, err := os.Stat(path)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o644), info.Mode().Perm())
}
