package load

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/perf/benchfmt"
)

// read returns all records and what was warned about.
func read(t testing.TB, o Options, args ...string) (records []*Record, bad []string,
	units benchfmt.UnitMetadataMap, err error,
) {
	t.Helper()
	o.Warn = func(err error) { bad = append(bad, err.Error()) }
	records, units, err = All(args, o)
	return records, bad, units, err
}

func value(r *Record, unit string) float64 {
	for _, v := range r.Values {
		if v.Unit == unit || v.OrigUnit == unit {
			if v.OrigUnit == unit {
				return v.OrigValue
			}
			return v.Value
		}
	}
	return -1
}

func TestTextWithLogsAndABadLine(t *testing.T) {
	records, bad, units, err := read(t, Options{}, "testdata/bench.txt")
	require.NoError(t, err)
	require.Len(t, records, 3)
	assert.Equal(t, []string{
		"testdata/bench.txt:12: parsing measurement: invalid syntax",
		"testdata/bench.txt:17: a failed benchmark left no result: testdata/bench.txt:17: result " +
			"/nowhere/MultiTurn/trial_0/rank_0/kvcache_results_20261120_103821.json: no such " +
			"file or directory",
	}, bad)
	first := records[0]
	assert.Equal(t, "Tier/tier=cpu/op=read/size=1MiB-2", first.Name)
	assert.Equal(t, 8, first.Line)
	assert.Equal(t, 130787.0, value(first, "ns/op"))
	assert.Equal(t, 8017412096.0, value(first, "read-B/s"))
	assert.Contains(t, first.Missing, "testdata/bench.txt:8: result /nowhere/")
	assert.Nil(t, first.Result)

	moved := records[1]
	require.NotNil(t, moved.Result, "the result file moved together with the text")
	assert.Equal(t, "StorageThroughput", moved.Result.Benchmark)
	assert.Equal(t, 13, moved.Line)
	assert.Equal(t, 160174558.0, value(moved, "read-p95-ns"), "the line's numbers, not the file's")
	assert.Nil(t, records[2].Result)
	assert.Equal(t, 1, units.GetBetter("read-B/s"))
	assert.Equal(t, 1, units.GetBetter("hit-ratio"), "what the suite knows of its units")
	assert.Equal(t, []Setting{{"kvbench-format", "2"}, {"division", "quick"}, {"seed", "42"},
		{"goos", "linux"}, {"pkg", "kvbench/benchmarks"}}, first.Config)
}

// With -v a benchmark's log comes before its result line.
func TestVerboseText(t *testing.T) {
	records, bad, _, err := read(t, Options{}, "testdata/chatty.txt")
	require.NoError(t, err)
	assert.Empty(t, bad)
	require.Len(t, records, 1)
	assert.NotNil(t, records[0].Result)
}

// Output events split result lines, and those of packages interleave.
func TestEvents(t *testing.T) {
	records, bad, _, err := read(t, Options{}, "testdata/events.json")
	require.NoError(t, err)
	assert.Empty(t, bad)
	require.Len(t, records, 2)
	assert.Equal(t, "Tier/tier=cpu-2", records[0].Name)
	assert.Equal(t, 8.0, value(records[0], "read-B/s"))
	assert.Equal(t, 8, records[0].Line)
	assert.Equal(t, "Other-8", records[1].Name)
	assert.Equal(t, "goos", records[1].Config[0].Key)
	assert.Empty(t, records[0].Config)
}

func TestResultFilesAndDirectories(t *testing.T) {
	target, err := filepath.Abs("testdata/option_2")
	require.NoError(t, err)
	link := filepath.Join(t.TempDir(), "results") // which is followed
	require.NoError(t, os.Symlink(target, link))
	records, _, _, err := read(t, Options{}, link, "testdata/python.json")
	require.NoError(t, err)
	require.Len(t, records, 2)
	assert.Equal(t, []string{link, "testdata/python.json"},
		[]string{records[0].Source, records[1].Source})
	ours, python := records[0], records[1]
	assert.Equal(t, "StorageThroughput", ours.Name)
	require.NotEmpty(t, ours.Values, "the values that its line would have")
	assert.Equal(t, float64(ours.Result.WindowNS)/float64(ours.Result.Requests.Completed),
		value(ours, "ns/op"))
	assert.True(t, python.Python)
	assert.Nil(t, python.Result)
	bandwidth, ok := python.Lookup("summary.cache_stats.tier_storage_read_bandwidth_gbps").(float64)
	require.True(t, ok)
	assert.Equal(t, bandwidth*(1<<30), value(python, "read-B/s"))
	assert.Equal(t, -1.0, value(python, "hit-ratio"), "counted differently there: not invented")
	assert.Nil(t, python.Lookup("parameters"))
}

func TestStandardInput(t *testing.T) {
	text, err := os.ReadFile("testdata/chatty.txt")
	require.NoError(t, err)
	records, _, _, err := read(t, Options{Stdin: bytes.NewReader(text)}, "testdata/python.json",
		"-")
	require.NoError(t, err)
	assert.Len(t, records, 2)
	assert.Equal(t, []string{"testdata/python.json", "-"},
		[]string{records[0].Source, records[1].Source})
	assert.Contains(t, records[1].Missing, "stdin:5")
}

// The rest of a text whose first line is too long is not read, and a line in pieces takes no more memory than the
// longest line.
func TestLinesWithoutEnd(t *testing.T) {
	for _, fill := range []string{"x", " ", "\x00"} {
		endless := io.MultiReader(strings.NewReader(strings.Repeat(fill, 2*maxLine)), iotest.ErrReader(io.ErrNoProgress))
		_, _, _, err := read(t, Options{Stdin: endless}, "-")
		assert.ErrorContains(t, err, "stdin:1: the first line is longer than 61440 bytes")
	}
	var p packageText
	for range 9 {
		p.add(strings.Repeat("x", maxLine), 1)
	}
	p.add("\n", 2)
	p.add("BenchmarkA 1 2 ns/op\n", 3)
	require.Len(t, p.lines, 2)
	assert.Len(t, p.lines[0], 2*maxLine+1)
	assert.Equal(t, "BenchmarkA 1 2 ns/op\n", p.lines[1])
}

func TestWhatCannotBeRead(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
		return path
	}
	result, err := os.ReadFile(
		"testdata/option_2/trial_0/rank_0/kvcache_results_20261120_103902.json")
	require.NoError(t, err)
	future := bytes.Replace(result, []byte(`"schema_version": "2.0"`),
		[]byte(`"schema_version": "4.0"`), 1)
	for _, c := range []struct{ arg, want string }{
		{write("zero.txt", ""), "zero.txt:1: it is empty"},
		{write("zero.json", ""), "zero.json:1: it is empty"},
		{write("prose.txt", "hello\nworld\n"), "prose.txt: no benchmark result in it"},
		{write("cut.json", string(result[:1000])), "cut.json:38: truncated JSON"},
		{write("wrong.json", `{"schema_version":"2.0","summary":{},"trial":"x"}`),
			"wrong.json:1: json: cannot unmarshal"},
		{write("other.json", `{"a":1}`), "other.json:1: not a benchmark result"},
		{write("future.json", string(future)), `unsupported result schema "4.0"`},
		{write("past.json", `{"schema_version":"1.0","summary":{}}`), "past.json:1: unsupported " +
			"result schema: schema 1 is of an older kvbench"},
		{write("past.txt", "kvbench-format: 1\nBenchmarkA 1 5 ns/op\n"), "past.txt:2: unsupported "},
		{write("doc.json", `{"kvreport_schema": "1.0", "results": [{"name":"X","values":[]}`),
			"doc.json:1: it is truncated"},
		{write("doc2.json", `{"kvreport_schema": "2.0", "results": []}`), "this version reads 1.x"},
		{write("doc3.json", `{"kvreport_schema": "1.0", "results": 7}`), "results is not a list"},
		{filepath.Dir(write("none/x.txt", "x")), "none: no benchmark result in this directory"},
		{filepath.Dir(write("half/kvcache_results_1.json", `{"summary":`)),
			"kvcache_results_1.json:1: truncated JSON"},
		{filepath.Join(dir, "absent"), "no such file"},
		{"-", "no standard input"},
	} {
		_, _, _, err := read(t, Options{}, c.arg)
		require.ErrorContains(t, err, c.want, c.arg)
		assert.NotContains(t, err.Error(), "\n")
	}
	_, _, _, err = read(t, Options{})
	assert.ErrorContains(t, err, "no input")
}

func TestLongAndOddLines(t *testing.T) {
	text := "BenchmarkA 1 5 ns/op\n" + strings.Repeat("x", 100<<10) + "\n" +
		strings.Repeat("y", 700<<10) + "\r\nBenchmarkB 1 6 ns/op\r\n" +
		"{\"not\": \"an event\"}\nBenchmarkC 1 NaN x\nBenchmarkD 1 +Inf x"
	records, bad, _, err := read(t, Options{Stdin: strings.NewReader(text)}, "-")
	require.NoError(t, err)
	require.Len(t, records, 4)
	assert.Len(t, bad, 2)
	assert.Equal(t, 4, records[1].Line)
	b, err := json.Marshal(records[3])
	require.NoError(t, err)
	var again Record
	require.NoError(t, json.Unmarshal(b, &again))
	assert.Equal(t, records[3], &again)
}

// A zero is a value of the same metric as others.
func TestAZeroKeepsItsMetric(t *testing.T) {
	records, _, _, err := read(t,
		Options{Stdin: strings.NewReader("BenchmarkA 1 0 x-ns\nBenchmarkA 1 5 x-ns\n")}, "-")
	require.NoError(t, err)
	require.Len(t, records, 2)
	assert.Equal(t, records[1].Values[0].Unit, records[0].Values[0].Unit)
	res := &Record{Values: Values{tidy(0, "x-ns")}}
	assert.Equal(t, records[1].Values[0].Unit, res.Values[0].Unit, "of a result file, too")
}

func TestConflictingUnits(t *testing.T) {
	_, bad, units, err := read(t,
		Options{Stdin: strings.NewReader("Unit x better=higher\nUnit x better=lower\nBenchmarkA " +
			"1 5 x\n")}, "-")
	require.NoError(t, err)
	assert.Len(t, bad, 1)
	assert.Equal(t, 1, units.GetBetter("x"))
}

// Other programs that write the document have null for what is not there.
func TestDocumentOfAnotherProgram(t *testing.T) {
	path := filepath.Join(t.TempDir(), "archive.json")
	require.NoError(t, os.WriteFile(path, []byte(`{"kvreport_schema": "1.0", "results": [
		{"name": "X", "config": null, "values": [{"unit": "ns/op", "value": 5}], "result": null}
	], "units": null}`), 0o600))
	records, _, _, err := read(t, Options{}, path)
	require.NoError(t, err)
	require.Len(t, records, 1)
	assert.Nil(t, records[0].Raw)
	assert.False(t, records[0].Python)
}

// TestRanksOfThePythonBenchmark: its launcher puts each client into a directory of its own, and the
// clients of a trial are one trial.
func TestRanksOfThePythonBenchmark(t *testing.T) {
	one, err := os.ReadFile("testdata/python.json")
	require.NoError(t, err)
	dir := t.TempDir()
	for _, at := range []string{"trial_0/rank_0", "trial_0/rank_1", "trial_1/rank_1"} {
		path := filepath.Join(dir, "option_1", at, "kvcache_results_20260908_120000.json")
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, one, 0o644))
	}
	alone, _, _, err := read(t, Options{}, "testdata/python.json")
	require.NoError(t, err)
	trials, _, _, err := read(t, Options{Trials: true}, dir)
	require.NoError(t, err)
	require.Len(t, trials, 2)
	for _, unit := range []string{"req/s", "read-B/s"} {
		require.Positive(t, value(alone[0], unit), unit)
		assert.InEpsilon(t, 2*value(alone[0], unit), value(trials[0], unit), 1e-9, "rates add up")
	}
	assert.Positive(t, value(alone[0], "read-p95-ns"))
	assert.Negative(t, value(trials[0], "read-p95-ns"), "percentiles of two ranks do not")
	assert.Empty(t, trials[1].Values)
	assert.Equal(t, "rank 0 of 2 is missing", trials[1].Missing)
	all, _, _, err := read(t, Options{}, dir)
	require.NoError(t, err)
	assert.Len(t, all, 3, "who passes records on has them as they are")
}
