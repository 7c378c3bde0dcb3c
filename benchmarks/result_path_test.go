package benchmarks

import (
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench/merge/tree"
	"kvbench/kvbench/params"
)

// Three simulated runs take no second together, and each of them has its result.
func TestResultsOfOneSecondStayApart(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) { // whose time stands still
		var names []string
		for range 3 {
			path := resultPath(&params.Values{ResultsDir: dir}, "Synthetic/io-depth=1", 0, "rank_0")
			assert.Regexp(t, tree.Layout, path)
			require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
			require.NoError(t, os.WriteFile(path, nil, 0o644))
			names = append(names, filepath.Base(path))
		}
		now := time.Now().Format("kvcache_results_20060102_150405")
		assert.Equal(t, []string{now + ".json", now + "_2.json", now + "_3.json"}, names)
	})
}
