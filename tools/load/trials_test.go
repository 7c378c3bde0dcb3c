package load_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench/merge"
	"kvbench/kvbench/result"
	"kvbench/tools/load"
)

// together writes two trials of two ranks that were started together, with the result of all of
// each, and the text that the coordinator printed.
func together(t *testing.T) (dir, text string) {
	dir = t.TempDir()
	text = "kvbench-format: 2\nranks: 2\n"
	put := func(r *result.Result, whose string) string {
		path := filepath.Join(dir, "option_1", fmt.Sprintf("trial_%d", r.Trial), whose,
			"kvcache_results_20260908_120000.json")
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, r.WriteJSON(path))
		return path
	}
	for trial := range 2 {
		var ranks []*result.Result
		for rank := range 2 {
			r := &result.Result{SchemaVersion: result.SchemaVersion, Name: "MaxStorageStress",
				Status: result.StatusComplete, Benchmark: "MaxStorageStress", Option: new(1),
				Trial: trial, Count: 2, Rank: rank, Ranks: 2, Nonce: fmt.Sprint("nonce ", trial),
				StartTime: fmt.Sprintf("2026-09-08T12:0%d:00Z", trial), WindowNS: 1e9}
			put(r, fmt.Sprintf("rank_%d", rank))
			ranks = append(ranks, r)
		}
		all := merge.Ranks(ranks, &result.Clients{})
		text += fmt.Sprintf("BenchmarkMaxStorageStress-2 1 %d ns/op\n--- BENCH: "+
			"BenchmarkMaxStorageStress-2\n    run.go:1: result: %s\n", trial+5,
			put(all, "all_ranks"))
	}
	file := filepath.Join(t.TempDir(), "out.txt")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
	return dir, file
}

// TestRanksThatWereStartedTogetherAreOneTrial, in whatever way their results are named.
func TestRanksThatWereStartedTogetherAreOneTrial(t *testing.T) {
	dir, text := together(t)
	for _, args := range [][]string{{dir}, {text}, {text, dir}} {
		records, _, err := load.All(args, load.Options{Trials: true})
		require.NoError(t, err)
		require.Len(t, records, 2, args)
		for trial, rec := range records {
			assert.Equal(t, []any{trial, []int{0, 1}}, []any{rec.Result.Trial,
				rec.Result.MergedRanks})
			assert.Empty(t, merge.Missing(rec.Result))
		}
	}
	// Without Options.Trials all records are read.
	records, _, err := load.All([]string{dir}, load.Options{})
	require.NoError(t, err)
	assert.Len(t, records, 6)
	// The tree for sums over ranks has the ranks.
	found, err := merge.ReadTree(dir)
	require.NoError(t, err)
	assert.Len(t, found.Files, 4)
}
