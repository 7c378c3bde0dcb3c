package xlsx

import (
	"bytes"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/xuri/excelize/v2"

	"kvbench/kvbench/record"
	"kvbench/kvbench/result"
	"kvbench/tiers"
	"kvbench/tools/golden"
	"kvbench/tools/load"
	"kvbench/tools/stats"
)

// pythonColumns is the number of columns of the Python benchmark's sheet. kvbench's columns follow.
const pythonColumns = 99

var inputs = []string{"../../load/testdata/bench.txt", "../../load/testdata/option_2",
	"../../load/testdata/python.json"}

func read(t testing.TB, o load.Options, args ...string) ([]*load.Record, *stats.Table) {
	t.Helper()
	records, units, err := load.All(args, o)
	require.NoError(t, err)
	return records, stats.Build(records, units)
}

func open(t *testing.T, args ...string) *excelize.File {
	t.Helper()
	records, table := read(t, load.Options{}, args...)
	var b bytes.Buffer
	require.NoError(t, Write(&b, records, table, nil))
	f, err := excelize.OpenReader(&b)
	require.NoError(t, err)
	return f
}

// cells are the beginning of a sheet as text: the head and a few rows, or of a sheet of charts the
// first rows of each chart. Lines end after 160 columns.
func cells(t *testing.T, f *excelize.File, sheet string) string {
	t.Helper()
	rows, err := f.GetRows(sheet, excelize.Options{RawCellValue: true})
	require.NoError(t, err)
	const most = 4
	var b strings.Builder
	fmt.Fprintf(&b, "== %s\n", sheet)
	n := 0
	for _, row := range rows {
		if n++; len(row) == 0 {
			n = 0
		}
		line := []rune(filePath.ReplaceAllString(strings.Join(row, " | "), "/…/kvcache_results"))
		switch {
		case n > most:
			continue
		case len(line) > 160:
			line = append(line[:159], '…')
		}
		b.WriteString(string(line) + "\n")
	}
	return b.String()
}

var filePath = regexp.MustCompile(`(/[^/\s]+)+/kvcache_results`)

// summaryCells are the first sheet, which is too wide to read, with one line per column, from one on.
func summaryCells(t *testing.T, f *excelize.File, from int) string {
	t.Helper()
	rows, err := f.GetRows("Summary", excelize.Options{RawCellValue: true})
	require.NoError(t, err)
	var b strings.Builder
	for c := from; c < len(rows[0]); c++ {
		for _, row := range rows {
			if c < len(row) {
				b.WriteString(filePath.ReplaceAllString(row[c], "/…/kvcache_results"))
			}
			b.WriteString(" | ")
		}
		b.WriteString("\n")
	}
	return b.String()
}

func TestGolden(t *testing.T) {
	f := open(t, inputs...)
	var b strings.Builder
	b.WriteString(summaryCells(t, f, 0))
	for _, sheet := range f.GetSheetList()[1:] {
		b.WriteString(cells(t, f, sheet))
	}
	golden.Check(t, "workbook.txt", b.String())
}

// Sections of some benchmarks only; predictions are marked in every sheet and every chart.
func TestParts(t *testing.T) {
	f := open(t, golden.Parts(t)...)
	var b strings.Builder
	for _, sheet := range []string{"Facts", "Simulation", "Autoscaling", "Block Cache", "Replay",
		"Objects", "Endpoints", "Validation", "Chart Data"} {
		b.WriteString(cells(t, f, sheet))
	}
	b.WriteString(summaryCells(t, f, pythonColumns))
	golden.Check(t, "parts.txt", b.String())
	rows, err := f.GetRows("Charts")
	require.NoError(t, err)
	assert.Regexp(t, `These are 10 of \d+ charts; the page`, fmt.Sprint(rows))
	rows, err = f.GetRows("Performance Metrics")
	require.NoError(t, err)
	for _, row := range rows[1:] {
		assert.NotContains(t, []string{"yes", "no"}, row[len(row)-1],
			"a prediction and a measurement are never compared")
	}
}

func TestSheets(t *testing.T) {
	f := open(t, inputs...)
	for _, sheet := range f.GetSheetList()[:len(f.GetSheetList())-2] {
		p, err := f.GetPanes(sheet)
		require.NoError(t, err)
		assert.True(t, p.Freeze, sheet)
		assert.Equal(t, 1, p.YSplit, sheet)
		// The columns that name a row stay while the rest scrolls: at the left of the frozen pane.
		heads, err := f.GetRows(sheet)
		require.NoError(t, err)
		if sheet := heads[0]; slices.Index(sheet, "Benchmark") < 99 {
			assert.Less(t, slices.Index(sheet, "Benchmark"), p.XSplit, sheet)
		}
	}
	charts := 0
	f.Pkg.Range(func(name, _ any) bool {
		if strings.HasPrefix(name.(string), "xl/charts/chart") {
			charts++
		}
		return true
	})
	assert.Equal(t, 9, charts)
	kind, err := f.GetCellType("Summary", "C3")
	require.NoError(t, err)
	assert.NotEqual(t, excelize.CellTypeSharedString, kind, "numbers are numbers")
}

// Columns that a result of the Python benchmark fills are filled by ours, too: by the same keys.
func TestPythonColumnsAreOurs(t *testing.T) {
	// The fixture has too few samples for the last percentiles, and its storage tier is written by
	// demotions only, which are no operations: a second result has both.
	rec := record.New(1)
	rec.Open(0, time.Second)
	for range 100_000 {
		for op := range tiers.NumOps {
			rec.Operation(record.OpSample{Level: tiers.Storage, Op: op, Bytes: 1 << 20,
				Timing: tiers.Timing{Device: time.Millisecond, Host: time.Millisecond}})
		}
		rec.Request(record.RequestSample{})
	}
	path := filepath.Join(t.TempDir(), "kvcache_results_1.json")
	require.NoError(t, record.Build(
		record.Info{Result: result.Result{Benchmark: "MaxStorageStress",
			Tiers: []result.Tier{{Level: "storage"}}}}, rec).WriteJSON(path))

	records, _ := read(t, load.Options{}, "../../load/testdata/option_2",
		"../../load/testdata/python.json", path)
	ours, python, written := records[0], records[1], records[2]
	filled := 0
	for _, c := range summaryColumns()[:pythonColumns] {
		if c.value(python) == nil {
			continue
		}
		filled++
		if strings.Contains(c.title, "GPU") {
			continue // the fixture has no gpu tier: absent is null with us, 0 with them
		}
		assert.True(t, c.value(ours) != nil || c.value(written) != nil, c.title)
	}
	assert.Equal(t, 73, filled, "all but the run parameters, which its file does not have")
	assert.Nil(t, summaryColumns()[1].value(python), "missing keys are not invented")
}

func TestLinesWithoutResultFiles(t *testing.T) {
	text := "BenchmarkA-2 1 5 ns/op 1073741824 read-B/s 3 req/s\n"
	records, table := read(t, load.Options{Stdin: strings.NewReader(text)}, "-")
	for _, c := range summaryColumns() {
		switch c.title {
		case "Tier Storage Read Bandwidth (GiB/s)":
			assert.Equal(t, 1.0, c.value(records[0]))
		case "Requests/sec":
			assert.Equal(t, 3.0, c.value(records[0]))
		case "Num Users", "E2E Latency P50 (ms)":
			assert.Nil(t, c.value(records[0]))
		}
	}
	var b bytes.Buffer
	require.NoError(t, Write(&b, records, table, nil))
}

// A text that only looks like a number, or has more digits than a spreadsheet keeps, stays a text.
func TestTyped(t *testing.T) {
	for text, want := range map[string]any{"8": 8.0, "-0.5": -0.5, "1e-05": 1e-05, "1e+06": 1e6,
		"9007199254740993": "9007199254740993", "123456789012345": 123456789012345.0,
		"1234e10": "1234e10", "0123": "0123", "0": 0.0, "0.25": 0.25, "0.30000000000000004": 0.30000000000000004,
		"1e+999": "1e+999", "inf": "inf", "nan": "nan",
		"0x10": "0x10", "1_000": "1_000", "true": true, "t": "t", "": nil, "–": nil} {
		assert.Equal(t, want, Typed(text), text)
	}
	assert.Equal(t, 3.0, Typed(3.0))
}

// A rate that the result does not know is an empty cell, although the Python benchmark's keys have 0.
func TestAnUnknownRateIsEmpty(t *testing.T) {
	records, _ := read(t, load.Options{}, "../../../kvbench/record/testdata/result.json")
	r := records[0].Result
	r.WindowNS, r.Requests = 0, result.RequestTotals{}
	for i := range r.Tiers {
		r.Tiers[i].Read.BytesPerSecond = nil
	}
	heads, cells := Summary(records)
	for _, title := range []string{"Requests/sec", "Avg Throughput (tok/s)", "Storage Throughput (tok/s)",
		"Tier Storage Read Bandwidth (GiB/s)", "Tier CPU Read Bandwidth (GiB/s)"} {
		assert.Nil(t, cells[0][slices.Index(heads, title)], title)
	}
	assert.NotNil(t, cells[0][slices.Index(heads, "Tier Storage Write Bandwidth (GiB/s)")])
}

// A seed of many digits keeps all of them.
func TestASeedKeepsItsDigits(t *testing.T) {
	records, _ := read(t, load.Options{}, "../../../kvbench/record/testdata/result.json")
	records[0].Result.Seed = 1<<53 + 1
	heads, cells := Summary(records)
	assert.Equal(t, "9007199254740993", cells[0][slices.Index(heads, "Seed")])
}
