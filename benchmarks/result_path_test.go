package benchmarks

import (
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench/merge"
	"kvbench/kvbench/params"
	"kvbench/kvbench/result"
)

// Three simulated runs take no second together, and each of them has its result.
func TestResultsOfOneSecondStayApart(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) { // whose time stands still
		var names []string
		for range 3 {
			path := resultPath(&trial{line: &line{v: &params.Values{ResultsDir: dir}},
				name: "Synthetic/io-depth=1"}, "rank_0")
			assert.Regexp(t, merge.Layout, path)
			require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
			require.NoError(t, os.WriteFile(path, nil, 0o644))
			names = append(names, filepath.Base(path))
		}
		now := time.Now().Format("kvcache_results_20060102_150405")
		assert.Equal(t, []string{now + ".json", now + "_2.json", now + "_3.json"}, names)
	})
}

// A summary takes the place of an earlier run's as a whole: a reader of that one goes on reading it.
func TestASummaryIsReplacedAsAWhole(t *testing.T) {
	summary := filepath.Join(t.TempDir(), "summary.txt")
	before := filepath.Join(t.TempDir(), "before.txt")
	require.NoError(t, os.WriteFile(summary, []byte("of an earlier run"), 0o644))
	require.NoError(t, os.Link(summary, before))
	r := &result.Result{Benchmark: "Synthetic", Name: "Synthetic", Status: result.StatusComplete}
	require.NoError(t, save(nil, r, filepath.Join(filepath.Dir(summary), "kvcache_results.json")))
	text, err := os.ReadFile(before)
	require.NoError(t, err)
	assert.Equal(t, "of an earlier run", string(text))
	text, err = os.ReadFile(summary)
	require.NoError(t, err)
	assert.Contains(t, string(text), "Synthetic")
}
