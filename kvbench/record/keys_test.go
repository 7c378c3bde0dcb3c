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
	"kvbench/tools/golden"
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

// The golden file has the Python benchmark's keys of a result with an autoscaler and a recording.
// That benchmark's aggregation adds numbers and fails on null, and its spreadsheet leaves a cell
// empty, so there is no null but the summary of an autoscaler that did not run.
func TestPythonKeys(t *testing.T) {
	text, err := json.MarshalIndent(partsResult().Python(), "", " ")
	require.NoError(t, err)
	golden.Check(t, "python.json", string(text)+"\n")
	rec := openRecorder(1, time.Second)
	rec.Request(RequestSample{Class: workloads.Batch,
		Time: result.RequestTime{EndToEnd: 1e6}})
	least := Build(Info{Result: result.Result{Tiers: []result.Tier{{Level: "storage"}}},
		QoS: users.Default().QoS}, rec)
	for _, r := range []*result.Result{fixtureResult(), partsResult(), least} {
		summary := python(t, r, "summary")
		if r.Autoscaler == nil {
			assert.Nil(t, summary["autoscaling_summary"])
			delete(summary, "autoscaling_summary")
		}
		numbers(t, "summary", summary)
		numbers(t, "validation", python(t, r, "validation"))
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
	again, err := got.Encode()
	require.NoError(t, err)
	assert.Equal(t, string(text), string(again))
	assert.Equal(t, want.Metrics(), got.Metrics(), "views are made from what the file holds")
	info, err := os.Stat(path)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o644), info.Mode().Perm())
}
