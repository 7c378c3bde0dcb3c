package e2e

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench/params"
	"kvbench/kvbench/result"
	"kvbench/tools/golden"
)

// The pages whose block and table these tests compare with the code.
const (
	examplePage    = moduleRoot + "/benchmarks/measurements/example.md"
	benchmarksPage = moduleRoot + "/benchmarks/README.md"
)

// always are the units on the line of every benchmark with requests that reads and writes.
var always = strings.Fields("ns/op req/s tok/s storage-tok/s read-B/s write-B/s read-p50-ns " +
	"read-ns/MiB hit-ratio served-ratio cpu-ns/B peak-RSS-bytes")

func page(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		t.Skipf("a compiled test binary outside of the module: %v", err)
	}
	require.NoError(t, err)
	return string(text)
}

// fenced returns the lines of the block ```name of the example's page.
func fenced(t *testing.T, name string) string {
	t.Helper()
	_, rest, found := strings.Cut(page(t, examplePage), "\n```"+name+"\n")
	require.True(t, found, "the page has no block %s; testdata/readme-sample.sh fills it", name)
	block, _, found := strings.Cut(rest, "\n```\n")
	require.True(t, found, "the block %s does not end", name)
	return block
}

func TestReadmeSampleHasTheDocumentedUnits(t *testing.T) {
	results, _ := parse(t, fenced(t, "benchmark-output"))
	require.NotEmpty(t, results)
	requests := 0
	for _, r := range results {
		have := map[string]bool{}
		for _, v := range r.Values {
			unit := v.OrigUnit
			if unit == "" { // benchfmt had nothing to tidy
				unit = v.Unit
			}
			have[unit] = true
			known := slices.ContainsFunc(result.Lines,
				func(u result.LineUnit) bool { return u.Name == unit })
			assert.True(t, known, "%s prints %s, which is not documented", r.Name.Full(), unit)
		}
		name, _, _ := strings.Cut(string(r.Name.Base()), "/")
		bench, known := params.Benchmark(name)
		require.True(t, known, "%s is in the README, but there is no such benchmark", name)
		if bench.Load == params.LoadNone {
			continue
		}
		requests++
		for _, unit := range always {
			assert.True(t, have[unit], "the sample of %s lacks %s", name, unit)
		}
	}
	assert.NotZero(t, requests, "the sample shows no benchmark with requests")
}

// TestReadmeTable compares README's table of benchmarks with the code. With -update it writes the table.
func TestReadmeTable(t *testing.T) {
	begin := "<!-- benchmarks: go test ./benchmarks/e2e -run Readme -update writes this table -->\n"
	end := "<!-- end of benchmarks -->"
	head, rest, found := strings.Cut(page(t, benchmarksPage), begin)
	require.True(t, found)
	_, tail, found := strings.Cut(rest, end)
	require.True(t, found)
	golden.Check(t, "../"+benchmarksPage, head+begin+benchmarkTable()+end+tail)
}

// benchmarkTable is what each benchmark does.
func benchmarkTable() string {
	table := "\n| benchmark | what it does |\n|---|---|\n"
	for _, b := range params.Benchmarks() {
		table += "| " + b.Name + " | " + b.About + " |\n"
	}
	return table + "\n"
}
