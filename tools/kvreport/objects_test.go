package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// stored is a result of a run on an object store, which package objects made.
const stored = "../golden/testdata/objects.json"

// storedTrials are so many trials of it, whose first bytes took a multiple of the time.
func storedTrials(t *testing.T, n int, factor float64) string {
	t.Helper()
	text, err := os.ReadFile(stored)
	require.NoError(t, err)
	dir := t.TempDir()
	for i := range n {
		var r map[string]any
		require.NoError(t, json.Unmarshal(text, &r))
		first := r["objects"].(map[string]any)["get_first_byte"].(map[string]any)
		first["p95"] = int64(first["p95"].(float64) * factor * (1 + float64(i)/1000))
		r["trial"], r["count"] = i, n
		// Apart by an hour: results of one moment are one result.
		r["start_time"] = fmt.Sprintf("2026-03-04T%02d:06:07Z", i)
		changed, err := json.Marshal(r)
		require.NoError(t, err)
		name := filepath.Join(dir, fmt.Sprintf("trial_%d", i), "rank_0",
			"kvcache_results_20260304_050607.json")
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
		require.NoError(t, os.WriteFile(name, changed, 0o644))
	}
	return dir
}

func TestGateOfTheFirstByte(t *testing.T) {
	old, slow := storedTrials(t, 6, 1), storedTrials(t, 6, 1.5)
	code, out, errs := runsGate("-old", old, "-new", slow, "-max-regress", "ttfb-p95-ns=10%")
	assert.Equal(t, 1, code, errs)
	assert.Contains(t, out, "ttfb-p95-ns")
	// The bandwidths of copies are one number, of which a gate says that it sees nothing.
	code, out, errs = runsGate("-old", slow, "-new", old, "-max-regress", "ttfb-p95-ns=10%",
		"-allow-blind")
	assert.Zero(t, code, "%s%s", out, errs)
	assert.Contains(t, out, "ttfb-p95-ns")
}
