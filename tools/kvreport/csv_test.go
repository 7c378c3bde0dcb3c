package main

import (
	"encoding/csv"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestCSV: a row for each trial of the hand-made example, and the columns of json_to_xlsx.py, as it
// makes them of its own files.
func TestCSV(t *testing.T) {
	dir := ranks(t, t.TempDir(), "64KiB", 1)
	code, out, errs := call("", "csv", dir, "../load/testdata/python.json")
	require.Equal(t, Done, code, errs)
	rows, err := csv.NewReader(strings.NewReader(out)).ReadAll()
	require.NoError(t, err)
	require.Len(t, rows, 1+3+1)
	cells := map[string][]string{}
	for i, head := range rows[0] {
		for _, row := range rows[1:] {
			cells[head] = append(cells[head], row[i])
		}
	}
	assert.Equal(t, []string{"5", "6", "4", "273.728"}, cells["Tier Storage Read Bandwidth (GiB/s)"])
	assert.Equal(t, "121.793", cells["Total I/O Time (s)"][3])
	assert.Equal(t, "0.05747456", cells["Storage Requests/sec"][3][:10], "7 / 121.793 s")
	assert.Equal(t, "2026-09-08T12:00:00Z", cells["Timestamp"][0])
	assert.Empty(t, cells["Division"][3], "nobody knows")
	path := filepath.Join(t.TempDir(), "out.csv")
	code, _, errs = call("", "csv", dir, "../load/testdata/python.json", "-o", path)
	require.Equal(t, Done, code, errs)
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, out, string(data))
}

// TestNamesOfOthersAreNoFormulas: neither in a spreadsheet nor in a message.
func TestNamesOfOthersAreNoFormulas(t *testing.T) {
	r := measured("=HYPERLINK(1)", 0, 4)
	r.Division, r.Environment.Filesystem.Type = "@x", "-1.5"
	r.Harness.Verdict.Kind = "+x"
	code, out, errs := call("", "csv", kept(t, r))
	require.Equal(t, Done, code, errs)
	rows, err := csv.NewReader(strings.NewReader(out)).ReadAll()
	require.NoError(t, err)
	for head, want := range map[string]string{"Benchmark": "'=HYPERLINK(1)", "Division": "'@x",
		"Verdict": "'+x", "Filesystem": "-1.5"} {
		assert.Equal(t, want, rows[1][slices.Index(rows[0], head)], head)
	}
	r = measured("StorageCeiling/of=a%d", 0, 4)
	r.Benchmark, r.IO.Mode, r.IO.ChunkBytes = "StorageCeiling", "buffered", 1<<20
	code, _, errs = call("", "device", kept(t, r))
	assert.Equal(t, Usage, code)
	assert.Contains(t, errs, "StorageCeiling/of=a%d was written and read through the page cache")
}
