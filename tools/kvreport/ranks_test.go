package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench/result"
)

// The hand-computed example: GiB/s that two ranks read in three trials.
//
//	         rank 0  rank 1  sum
//	trial 0  2       3       5
//	trial 1  2.5     3.5     6
//	trial 2  1.5     2.5     4
//
// The sums have the median 5, and the mean 5; the six numbers have the median 2.5.
var readGiB = [3][2]float64{{2, 3}, {2.5, 3.5}, {1.5, 2.5}}

// ranks writes the example's results with a chunk size, each rate times a factor.
func ranks(t *testing.T, dir, chunk string, factor float64) string {
	t.Helper()
	for trial, rates := range readGiB {
		for rank, rate := range rates {
			rate *= factor
			r := &result.Result{
				SchemaVersion: result.SchemaVersion, Status: result.StatusComplete,
				Benchmark: "Synthetic", Name: "Synthetic", Division: result.DivisionOpen,
				Trial: trial, Count: 3, Rank: rank, Ranks: 2, Seed: uint64(42 + rank),
				CompletionUnit: result.UnitRequest, WindowNS: 10e9,
				Nonce: fmt.Sprint(chunk, trial, rank),
				StartTime: time.Date(2026, 9, 8, 12, trial, rank, 0,
					time.UTC).Format(time.RFC3339Nano),
				Model:       result.Model{Key: "llama3.1-8b"},
				IO:          result.IO{Mode: "direct", WriteDevice: result.WriteDeviceTransfer},
				Workload:    result.Workload{DecodeReads: "once", Users: 8, Workers: 8},
				Environment: result.Environment{Hostname: fmt.Sprint("node", rank)},
				Parameters: []result.Parameter{{Name: "chunk-size", Value: chunk},
					{Name: "rank", Value: fmt.Sprint(rank)}},
				Tiers: []result.Tier{{Level: "storage", CapacityBytes: new(int64(64 << 30)), Entries: 100,
					Read: result.TierTraffic{Bytes: int64(rate * 10 * (1 << 30)),
						BytesPerSecond: new(rate * (1 << 30))}}},
				Histograms: map[string]result.HistogramData{},
			}
			r.Requests.Completed = 100
			path := filepath.Join(dir, "Synthetic_"+chunk, fmt.Sprintf("trial_%d/rank_%d", trial,
				rank), "kvcache_results_20260908_120000.json")
			require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
			require.NoError(t, r.WriteJSON(path))
		}
	}
	return dir
}

// textOf is the text of a page.
func textOf(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	text := regexp.MustCompile(`(?s)<style>.*?</style>|<script.*?</script>|<[^>]*>`).ReplaceAllString(string(data), " ")
	return strings.Join(strings.Fields(text), " ")
}

// TestARankOfAnotherRun is missing in its trial, and is not summed with the ranks of this one.
func TestARankOfAnotherRun(t *testing.T) {
	for name, change := range map[string]func(r *result.Result){
		// A coordinator has compared the clocks of its ranks, and they agree about a nonce.
		"coordinated": func(r *result.Result) { r.ClockOffsetNS = new(int64) },
		"fewer ranks": func(r *result.Result) { r.Ranks = 1 + r.Rank },
		"same nonce":  func(r *result.Result) { r.Nonce, r.Ranks = "ab", 1+r.Rank },
	} {
		t.Run(name, func(t *testing.T) {
			dir, out := ranks(t, t.TempDir(), "64KiB", 1), filepath.Join(t.TempDir(), "out")
			for rank := range 2 {
				found, err := filepath.Glob(filepath.Join(dir, "Synthetic_64KiB/trial_1",
					fmt.Sprint("rank_", rank), "*.json"))
				require.NoError(t, err)
				require.Len(t, found, 1)
				data, err := os.ReadFile(found[0])
				require.NoError(t, err)
				r, err := result.Parse(data)
				require.NoError(t, err)
				change(r)
				require.NoError(t, r.WriteJSON(found[0]))
			}
			const foreign = "of another run than rank 0 of "
			code, text, _ := call("", "aggregate", dir, "-o", out+".json")
			assert.Equal(t, No, code)
			assert.Contains(t, text, "PARTIAL: 1 of 6 results missing")
			assert.Regexp(t, "missing: .*trial_1/rank_1/.*"+foreign, text)
			data, err := os.ReadFile(out + ".json")
			require.NoError(t, err)
			assert.Regexp(t, `"read_bandwidth_gbps": 2.5,`, string(data), "rank 0 alone")
			code, _, errs := call("", "submission", "-division", "open", "-organisation", "acme",
				"-system", "s", "-o", out, dir)
			assert.Equal(t, No, code)
			assert.Contains(t, errs, foreign)
			assert.Contains(t, errs, "results are missing, nothing was built")
			assert.NoDirExists(t, out)
			code, _, errs = call("", "html", dir, "-o", out+".html")
			require.Equal(t, Done, code, errs)
			assert.NotContains(t, textOf(t, out+".html"), "Synthetic read bandwidth 5 GiB/s n=3")
		})
	}
}
