package main

import (
	"fmt"
	"html"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/xuri/excelize/v2"

	"kvbench/kvbench/result"
)

// measured is a result of Synthetic with that read rate in GiB/s.
func measured(name string, trial int, gib int64) *result.Result {
	r := &result.Result{SchemaVersion: result.SchemaVersion, Status: result.StatusComplete,
		Benchmark: "Synthetic", Name: name, Division: result.DivisionOpen, Trial: trial,
		CompletionUnit: result.UnitRequest, WindowNS: 1e9, Nonce: fmt.Sprint(name, trial),
		StartTime: "2026-09-08T12:00:00Z",
		Tiers: []result.Tier{{Level: "storage", Read: result.TierTraffic{Bytes: gib << 30,
			BytesPerSecond: new(float64(gib << 30))}}},
		Timeline: &result.Timeline{IntervalNS: 1e9, LastNS: 1e9,
			ReadBytes: map[string][]int64{"storage": {gib << 30}}}}
	r.Requests.Completed = 5
	return r
}

// sheet returns the rows of a workbook's sheet, with | between the values.
func sheet(t *testing.T, path, name string) (lines []string) {
	t.Helper()
	f, err := excelize.OpenFile(path)
	require.NoError(t, err)
	defer f.Close()
	rows, err := f.GetRows(name, excelize.Options{RawCellValue: true})
	require.NoError(t, err)
	for _, row := range rows {
		lines = append(lines, strings.Join(row, "|"))
	}
	return lines
}

// kept writes results into a directory, which it returns.
func kept(t *testing.T, results ...*result.Result) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for i, r := range results {
		path := filepath.Join(dir, fmt.Sprintf("kvcache_results_%02d.json", i))
		require.NoError(t, r.WriteJSON(path))
	}
	return dir
}

// TestChartsAreOfTheTrialsThatAreComplete: medians and time series of the workbook leave out failed
// trials, show the median trial, as the page does, and no percentile of too few operations.
func TestChartsAreOfTheTrialsThatAreComplete(t *testing.T) {
	var all []*result.Result
	for trial, gib := range []int64{1, 9, 4, 2, 8} {
		r := measured("Synthetic", trial, gib)
		if gib > 7 {
			r.Status = result.StatusIncomplete
		}
		h := result.NewHistogram("ns")
		for range 20 {
			h.Record(7e6)
		}
		r.Histograms = map[string]result.HistogramData{}
		r.Histograms["storage_read"] = h.Encode()
		all = append(all, r)
	}
	path := filepath.Join(t.TempDir(), "a.xlsx")
	code, _, errs := call("", "xlsx", kept(t, all...), "-o", path)
	require.Equal(t, Done, code, errs)
	text := strings.Join(sheet(t, path, "Chart Data"), "\n")
	assert.Contains(t, text, "over time, median trial; a point is 1 s\ntime in the window (s)|read\n0|2\n")
	assert.True(t, strings.HasSuffix(text, "Latency of one entry on the storage tier, all trials\n"+
		"percentile (%)|read\nmin|7\n50|7"), "of 60 values there is no other percentile")
}

// TestRowsThatMayBeCompared: a row of which fewer than half of the trials of a run are limited by
// the storage has no judgement, and the first sentence counts the others.
func TestRowsThatMayBeCompared(t *testing.T) {
	var sides [2][]*result.Result
	for side := range sides {
		for trial := range 6 {
			for i, name := range []string{"Tier/tier=cpu", "Synthetic/a=2", "Synthetic/a=1"} {
				r := measured(name, trial, int64(10+20*side+trial))
				// The new side is in steady state and has written twice its capacity.
				if side == 1 {
					r.Tiers[0].Read.BytesPerSecond = new(float64(int64(30)<<30 + int64(trial)<<20))
				}
				r.DeviceCounters.AppWriteBytes = 2 << 30
				r.Environment.Device = &result.Device{Name: "nvme0n1", SizeBytes: new(int64(18 << 30))}
				r.Harness.Verdict.Kind = result.StorageLimited
				if trial > i && side == 1 {
					r.Harness.Verdict.Kind = result.Undecided
				}
				sides[side] = append(sides[side], r)
			}
		}
	}
	page, book := filepath.Join(t.TempDir(), "a.html"), filepath.Join(t.TempDir(), "a.xlsx")
	old, new := kept(t, sides[0]...), kept(t, sides[1]...)
	for command, path := range map[string]string{"html": page, "xlsx": book} {
		code, _, errs := call("", command, old, new, "-o", path)
		require.Equal(t, Done, code, errs)
	}
	code, quote, errs := call("", "quote", old, new)
	require.Equal(t, Done, code, errs)
	for _, line := range []string{
		`Synthetic/a=2 .* – +– +6/6, 2/6  not compared \(1, 2, 3, 4\)`,
		`Synthetic/a=1 .* 2.40× +2–3× +6/6, 3/6 +faster \(2, 3, 4\)`,
		`\(4\) undecided: the result has no verdict`,
		`003: not preconditioned .*: 0 of 3 rows steady, 2× the capacity written \(36 GiB\)\.`,
		`004: preconditioned as SNIA PTS asks, if .*: 3 of 3 rows steady, 2× the capacity written`} {
		assert.Regexp(t, line, quote)
	}
	text := html.UnescapeString(textOf(t, page))
	assert.Contains(t, text, ": 2 of 3 rows may be compared, and 004 is faster in all of them; faster at "+
		"Tier/tier=cpu 2.40×, "+
		"Synthetic/a=1 2.40×; mostly not storage-limited: Synthetic/a=2.")
	assert.Contains(t, text, " 3 of 6 storage-limited, 3 of 6 undecided ")
	assert.Contains(t, text, " 4 of 6 undecided, 2 of 6 storage-limited ")
	assert.Contains(t, text, " not compared mostly not storage-limited ")
	for _, line := range sheet(t, book, "Performance Metrics") {
		if row := strings.Split(line, "|"); row[2] == "read-B/s" {
			want := "yes"
			if row[0] == "Synthetic/a=2" {
				want = "mostly not storage-limited"
			}
			assert.Equal(t, want, row[16], row[0])
		}
	}
}
