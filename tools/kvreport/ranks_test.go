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
	"github.com/xuri/excelize/v2"

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
				Tiers: []result.Tier{{Level: "storage", CapacityBytes: new(int64(64 << 30)),
					Read: result.TierTraffic{Bytes: int64(rate * 10 * (1 << 30)),
						BytesPerSecond: new(rate * (1 << 30))}}},
				Histograms: map[string]result.HistogramData{},
			}
			r.Requests.Completed = 100
			c := &r.Summary.CacheStats
			c.StorageReadBandwidth, c.StorageEntries = rate, 100
			path := filepath.Join(dir, "Synthetic_"+chunk, fmt.Sprintf("trial_%d/rank_%d", trial,
				rank), "kvcache_results_20260908_120000.json")
			require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
			require.NoError(t, r.WriteJSON(path))
		}
	}
	return dir
}

// textOf is what a page says.
func textOf(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	text := regexp.MustCompile(`(?s)<style>.*?</style>|<script.*?</script>|<[^>]*>`).ReplaceAllString(string(data), " ")
	return strings.Join(strings.Fields(text), " ")
}

// medians are the rows of a workbook's metrics: the benchmark, the unit, how many trials, and their
// median.
func medians(t *testing.T, path string) (list []string) {
	t.Helper()
	f, err := excelize.OpenFile(path)
	require.NoError(t, err)
	defer f.Close()
	rows, err := f.GetRows("Performance Metrics", excelize.Options{RawCellValue: true})
	require.NoError(t, err)
	for _, row := range rows[1:] {
		if row[2] == "read-B/s" {
			list = append(list, strings.Join([]string{row[0], row[4], row[5]}, " | "))
		}
	}
	return list
}

// TestRanksAreNoTrials: page, workbook, gate, aggregate and submission tell one story.
func TestRanksAreNoTrials(t *testing.T) {
	dir, out := ranks(t, t.TempDir(), "64KiB", 1), t.TempDir()
	at := func(name string) string { return filepath.Join(out, name) }
	run := func(want int, args ...string) string {
		code, text, errs := call("", args...)
		require.Equal(t, want, code, "%v: %s", args, errs)
		return text
	}
	page := func(path string) {
		text := textOf(t, path)
		assert.Contains(t, text, "Synthetic read bandwidth 5 GiB/s n=3")
		assert.Contains(t, text, "users 16")
		assert.NotContains(t, text, "n=6")
	}
	run(Done, "html", dir, "-o", at("page.html"))
	page(at("page.html"))
	run(Done, "xlsx", dir, "-o", at("book.xlsx"))
	sums := []string{"Synthetic | 3 | 5368709120"}
	assert.Equal(t, sums, medians(t, at("book.xlsx")))
	text := run(Done, "gate", "-old", dir, "-new", dir, "-allow-few")
	assert.Regexp(t, `Synthetic +read-B/s +5.000GiB/s ± ∞ +5.000GiB/s ± ∞ .* 3\+3 `, text)
	assert.Regexp(t, `Synthetic +2 +3 +5 `, run(Done, "aggregate", dir, "-o", at("sum.json")))
	run(Done, "submission", "-division", "open", "-organisation", "acme", "-system", "s", "-o",
		at("tree"), dir)
	found, err := filepath.Glob(at("tree/open/acme/results/s/kv_cache/llama3.1-8b/run/*"))
	require.NoError(t, err)
	require.Len(t, found, 1)
	page(filepath.Join(found[0], "report.html"))
	assert.Equal(t, sums, medians(t, filepath.Join(found[0], "report.xlsx")))
	for _, name := range []string{at("sum.json"), filepath.Join(found[0],
		"summary.json")} {
		data, err := os.ReadFile(name)
		require.NoError(t, err)
		assert.Contains(t, string(data), `"aggregated_read_bandwidth_gbps": 5,`)
		assert.Contains(t, string(data), `"trial_count": 3,`)
	}
}

// TestAMixtureOfSettingsIsTwoRows in each of them.
func TestAMixtureOfSettingsIsTwoRows(t *testing.T) {
	dir, out := ranks(t, ranks(t, t.TempDir(), "64KiB", 1), "16KiB", 2), t.TempDir()
	at := func(name string) string { return filepath.Join(out, name) }
	run := func(want int, args ...string) string {
		code, text, errs := call("", args...)
		require.Equal(t, want, code, "%v: %s", args, errs)
		return text
	}
	page := func(path string) {
		text := textOf(t, path)
		assert.Contains(t, text, "Synthetic [chunk-size=64KiB] read bandwidth 5 GiB/s n=3")
		assert.Contains(t, text, "Synthetic [chunk-size=16KiB] read bandwidth 10 GiB/s n=3")
	}
	rows := []string{"Synthetic [chunk-size=16KiB] | 3 | 10737418240",
		"Synthetic [chunk-size=64KiB] | 3 | 5368709120"}
	run(Done, "html", dir, "-o", at("page.html"))
	page(at("page.html"))
	run(Done, "xlsx", dir, "-o", at("book.xlsx"))
	assert.Equal(t, rows, medians(t, at("book.xlsx")))
	text := run(Done, "gate", "-old", dir, "-new", dir, "-allow-few")
	assert.Regexp(t, `Synthetic \[chunk-size=16KiB\] +read-B/s +10.000GiB/s .* 3\+3 `, text)
	assert.Regexp(t, `Synthetic \[chunk-size=64KiB\] +read-B/s +5.000GiB/s .* 3\+3 `, text)
	text = run(Done, "aggregate", dir, "-o", at("sum.json"))
	assert.Regexp(t, `Synthetic \[chunk-size=16KiB\] +2 +3 +10 `, text)
	assert.Regexp(t, `Synthetic \[chunk-size=64KiB\] +2 +3 +5 `, text)
	run(Done, "submission", "-division", "open", "-organisation", "acme", "-system", "s", "-o",
		at("tree"), dir)
	found, err := filepath.Glob(at("tree/open/acme/results/s/kv_cache/llama3.1-8b/run/*"))
	require.NoError(t, err)
	require.Len(t, found, 1)
	page(filepath.Join(found[0], "report.html"))
	assert.Equal(t, rows, medians(t, filepath.Join(found[0], "report.xlsx")))
	assert.FileExists(t, filepath.Join(found[0],
		"Synthetic_chunk-size=16KiB/trial_2/rank_1/kvcache_results_20260908_120000.json"))
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
			for _, division := range []string{"open", "closed"} {
				code, _, errs := call("", "submission", "-division", division, "-organisation",
					"acme", "-system", "s", "-o", out, dir)
				assert.Equal(t, No, code)
				assert.Contains(t, errs, foreign)
				assert.Contains(t, errs, "results are missing, nothing was built")
				assert.NoDirExists(t, out)
			}
			code, _, errs := call("", "html", dir, "-o", out+".html")
			require.Equal(t, Done, code, errs)
			assert.NotContains(t, textOf(t, out+".html"), "Synthetic read bandwidth 5 GiB/s n=3")
		})
	}
}
