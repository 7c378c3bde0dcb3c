package result

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestSchema2KeepsTheKeysOfThePythonBenchmark: results of schema 2 hold these keys; read and
// exported they are the same, so that the converter loses nothing and the export says what the
// results said.
func TestSchema2KeepsTheKeysOfThePythonBenchmark(t *testing.T) {
	files, err := filepath.Glob("../merge/testdata/*.json")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, name := range files {
		data, err := os.ReadFile(name)
		require.NoError(t, err)
		want, err := ParsePython(data)
		require.NoError(t, err)
		r, err := Parse(data)
		require.NoError(t, err, name)
		assert.Equal(t, SchemaVersion, r.SchemaVersion)
		same(t, name, map[string]any(want), tree(t, r.Python()))
		if p := r.PlainIO; p != nil {
			steps, _ := tree(t, json.RawMessage(data))["plain_io"].(map[string]any)["ladder"].([]any)
			assert.Len(t, p.Sweep, len(steps), name)
		}
	}
}

func tree(t *testing.T, v any) (out map[string]any) {
	t.Helper()
	data, err := json.Marshal(v)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, &out))
	return out
}

// percentile matches the keys of percentiles. Schema 2 had the sample of the nearest rank there; the export
// interpolates, so only the kind of the value is the same.
var percentile = regexp.MustCompile(`[._](p50|p95|p99|p999|p9999)(_ms)?$|\.criteria\.\d+\.actual$`)

// same compares but for the last digits of numbers.
func same(t *testing.T, path string, want, got any) {
	t.Helper()
	switch want := want.(type) {
	case map[string]any:
		have, _ := got.(map[string]any)
		for k, v := range have { // the file has more keys, of its own
			same(t, path+"."+k, want[k], v)
		}
	case []any:
		have, _ := got.([]any)
		require.Len(t, have, len(want), path)
		for i, v := range want {
			same(t, fmt.Sprint(path, ".", i), v, have[i])
		}
	case float64:
		have, ok := got.(float64)
		require.True(t, ok, "%s is %v", path, got)
		if percentile.MatchString(path) {
			return
		}
		assert.InDelta(t, want, have, 1e-9*max(1, want), path)
	default:
		assert.Equal(t, want, got, path)
	}
}

// TestParseUpgrades: what stands elsewhere in schema 3 is found there, without losing a digit.
func TestParseUpgrades(t *testing.T) {
	r, err := Parse([]byte(`{"schema_version":"2.0","window_ns":9007199254740993,
		"requests":{"completed":9007199254740995,"storage_latency_ns":1},
		"lookups":{"hits":4,"misses":1},"load":{"batch":{"offered":7}},
		"summary":{"requests_per_second":2.5,"storage_throughput_tokens_per_sec":3,
		"cache_stats":{"cache_hits":10,"cache_misses":1,"read_iops":9007199254740997},
		"qos_metrics":{"batch":{"sla":{"target_p95_ms":30.0001,"compliance":0.5}}}}}`))
	require.NoError(t, err)
	assert.Equal(t, []int64{9007199254740993, 9007199254740995, 9007199254740997, 6, 0},
		[]int64{r.WindowNS, r.Requests.Completed, r.Moved.ReadOperations, r.Moved.OwnFound,
			r.Moved.OwnGone})
	assert.Equal(t, []float64{2.5, 3}, []float64{*r.Requests.RequestsPerSecond,
		*r.Requests.StorageTokensPerSecond})
	assert.Equal(t, ClassOutcome{Offered: 7, TargetP95NS: 30000100, Compliance: new(0.5)},
		r.Load["batch"])
	_, err = Parse([]byte(`{"schema_version":"2.0","trial":"x"}`))
	require.Error(t, err)
}
