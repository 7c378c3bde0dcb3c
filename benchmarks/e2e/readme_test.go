package e2e

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench/params"
	"kvbench/kvbench/units"
	"kvbench/tools/golden"
)

// The pages whose blocks and tables these tests compare with the code.
const (
	numbersPage    = moduleRoot + "/kvbench/README.md"    // units, the full example
	benchmarksPage = moduleRoot + "/benchmarks/README.md" // benchmarks, parameters
)

type documentedUnit struct {
	unit   string
	always bool // on the line of every benchmark with requests that reads and writes
}

// documented are the units of a benchmark line. Scripts rely on them: a new one is added here and
// in the README, an old one keeps its name and meaning.
var documented = []documentedUnit{
	{"ns/op", true},
	{"req/s", true}, {"tok/s", true}, {"storage-tok/s", true},
	{"found-tok/s", false}, // of Engines alone
	{"read-B/s", true}, {"write-B/s", true},
	{"read-p50-ns", true}, {"read-p95-ns", false}, // percentiles need samples behind them
	{"read-p99-ns", false}, {"write-p95-ns", false},
	{"read-io-p50-ns", false}, {"read-io-p99-ns", false},
	{"write-io-p50-ns", false}, {"write-io-p99-ns", false}, {"ttfb-p95-ns", false},
	{"read-ns/MiB", true}, {"e2e-p95-ns", false},
	{"hit-ratio", true}, {"token-hit-ratio", false}, {"served-ratio", true},
	{"ttft-mean-ns", false}, // where a miss costs time, as the next
	{"ttft-p50-ns", false}, {"ttft-p95-ns", false},
	{"ttft-saved-ratio", false}, {"break-even-tokens", false},
	{"sustained-users", false}, {"peak-B/s", false}, {"io/s", false}, {"cpu-ns/io", false},
	{"knee-bytes", false},
	{"cpu-ns/B", true}, {"peak-RSS-bytes", true},
	{"slowest-rank-read-p95-ns", false}, {"slowest-rank-write-p95-ns", false}, // of several clients
	{"start-skew-ns", false},
	{"device-read-ratio", false}, {"ceiling-ratio", false},
	{"slowest-write-B/s", false}, {"slowest-read-B/s", false}, {"flush-p95-ns", false},
	{"removals/s", false}, {"freed-B/s", false},
	{"gen-B/s", false}, {"copy-B/s", false}, {"gen-copy-ratio", false}, {"zstd-ratio", false},
	{"duplicate-blocks", false},
}

func page(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		t.Skipf("a compiled test binary outside of the module: %v", err)
	}
	require.NoError(t, err)
	return string(text)
}

// fenced returns the lines of the block ```name of the page about numbers.
func fenced(t *testing.T, name string) string {
	t.Helper()
	_, rest, found := strings.Cut(page(t, numbersPage), "\n```"+name+"\n")
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
			known := slices.ContainsFunc(documented,
				func(d documentedUnit) bool { return d.unit == unit })
			assert.True(t, known, "%s prints %s, which is not documented", r.Name.Full(), unit)
		}
		name, _, _ := strings.Cut(string(r.Name.Base()), "/")
		bench, known := params.Benchmark(name)
		require.True(t, known, "%s is in the README, but there is no such benchmark", name)
		if bench.Load == params.LoadNone {
			continue
		}
		requests++
		for _, d := range documented {
			assert.True(t, have[d.unit] || !d.always, "the sample of %s lacks %s", name, d.unit)
		}
	}
	assert.NotZero(t, requests, "the sample shows no benchmark with requests")
}

func TestReadmeAndUnitLinesAgree(t *testing.T) {
	text := page(t, numbersPage)
	// The testing package's own, and those of which neither more nor less is better.
	directed := map[string]bool{"ns/op": true, "knee-bytes": true, "device-read-ratio": true}
	for _, u := range units.UnitDirections() {
		directed[u.Unit] = true
	}
	for _, d := range documented {
		assert.True(t, strings.Contains(text, "`"+d.unit+"`"), "%s is a unit that no page explains",
			d.unit)
		assert.True(t, directed[d.unit], "%s has no Unit line", d.unit)
		delete(directed, d.unit)
	}
	assert.Empty(t, directed, "Unit lines for undocumented units")
}

// TestReadmeTables compares the README's table of benchmarks and PARAMETERS.md with the code. With
// -update it writes both.
func TestReadmeTables(t *testing.T) {
	golden.Check(t, "../../PARAMETERS.md", parametersPage())
	text := page(t, benchmarksPage)
	const begin = "<!-- benchmarks: go test ./benchmarks/e2e -run Readme -update writes this table -->\n"
	head, rest, found := strings.Cut(text, begin)
	require.True(t, found)
	_, tail, found := strings.Cut(rest, "<!-- end of benchmarks -->")
	require.True(t, found)
	golden.Check(t, "../../README.md", head+begin+benchmarkTable()+
		"<!-- end of benchmarks -->"+tail)
}

// benchmarkTable is what each benchmark does.
func benchmarkTable() string {
	table := "\n| benchmark | what it does |\n|---|---|\n"
	for _, b := range params.Benchmarks() {
		table += "| " + b.Name + " | " + b.About + " |\n"
	}
	return table + "\n"
}

// parametersPage is benchmarks/PARAMETERS.md: what each flag means, and which benchmarks accept it.
func parametersPage() string {
	return `# Parameters

Generated from the code: ` + "`go test ./benchmarks/e2e -run Readme -update`" + ` writes this page.
Three defaults stand for the divisions quick, open and closed. [README.md](README.md) explains the
order of precedence, and the groups of benchmarks in the last column.

` + params.Reference()
}
