package e2e

import (
	"bufio"
	"encoding/json"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/perf/benchfmt"

	"kvbench/kvbench/params"
	"kvbench/kvbench/result"
)

// everything are the flags that make all benchmarks run, small and short.
func everything(b *bench) []string {
	data, err := filepath.Abs(testdata)
	require.NoError(b.t, err)
	return append(append(b.micro(), b.places()...),
		"-azure-trace-path", filepath.Join(data, "azure-small.csv"), "-io-trace-replay",
		filepath.Join(data, "iotrace-small.csv"),
		"-burst-trace-path", filepath.Join(data, "burstgpt-v3-small.csv"),
		"-block-trace-path", filepath.Join(data, "mooncake-small.jsonl"),
		"-dataset-path", filepath.Join(data, "sharegpt-small.json"))
}

// alwaysThere are the units of every benchmark that runs requests.
var alwaysThere = []string{"ns/op", "req/s", "tok/s", "write-B/s", "cpu-ns/B", "peak-RSS-bytes"}

// parse reads benchmark output and fails on everything that benchfmt does not like.
func parse(t testing.TB, text string) (results []*benchfmt.Result, units map[string]string) {
	t.Helper()
	units = make(map[string]string)
	r := benchfmt.NewReader(strings.NewReader(text), "output")
	for r.Scan() {
		switch rec := r.Result().(type) {
		case *benchfmt.Result:
			results = append(results, rec.Clone())
		case *benchfmt.UnitMetadata:
			units[rec.Unit] = rec.Key + "=" + rec.Value
		case *benchfmt.SyntaxError:
			t.Errorf("%v\n%s", rec, text)
		}
	}
	require.NoError(t, r.Err())
	return results, units
}

// checkResults wants both trials of every benchmark, with its units.
func checkResults(t *testing.T, text string, trials int) {
	t.Helper()
	results, units := parse(t, text)
	count := make(map[string]int)
	for _, r := range results {
		name := string(r.Name.Full())
		count[name]++
		assert.Equal(t, 1, r.Iters, name)
		for _, v := range r.Values {
			// ns/op is sec/op, tidied. The other one has no better direction, and so no Unit line.
			if !slices.Contains([]string{"sec/op", "device-read-ratio"}, v.Unit) {
				assert.True(t, strings.HasPrefix(units[v.Unit], "better=") ||
					strings.HasPrefix(units[v.OrigUnit], "better="), "%s: no Unit line for %s",
					name, v.Unit)
			}
			assert.True(t, v.Value >= 0 && !math.IsInf(v.Value, 0), "%s %g %s", name, v.Value,
				v.Unit)
		}
		bench, known := params.Benchmark(strings.Split(string(r.Name.Base()), "/")[0])
		assert.True(t, known, name)
		// So few requests fill none of Mooncake's buckets: nothing reaches the storage.
		if bench.Load == params.LoadNone || bench.Load == params.LoadReplay ||
			strings.Contains(name, "engine=mooncake") {
			continue
		}
		for _, unit := range alwaysThere {
			_, ok := value(r, unit)
			// In quick the cpu tier holds all small entries.
			assert.True(t, ok || unit == "write-B/s" &&
				(bench.Name == "DecodeOnly" || bench.Name == "StorageThroughput"), "%s lacks %s",
				name, unit)
		}
		_, ok := value(r, "read-B/s")
		assert.True(t, ok || bench.Name == "PrefillOnly" || bench.Name == "StorageThroughput",
			"%s lacks read-B/s", name)
	}
	var seen []string
	for name, n := range count {
		assert.Equal(t, trials, n, name)
		seen = append(seen, strings.SplitN(strings.SplitN(name, "-", 2)[0], "/", 2)[0])
	}
	slices.Sort(seen)
	var want []string
	for _, b := range params.Benchmarks() {
		if b.Name != "Knee" {
			want = append(want, b.Name)
		}
	}
	slices.Sort(want)
	assert.Equal(t, want, slices.Compact(seen))
}

// value looks a unit up as it was printed.
func value(r *benchfmt.Result, unit string) (float64, bool) {
	for _, v := range r.Values {
		if v.OrigUnit == unit {
			return v.OrigValue, true
		}
		if v.Unit == unit {
			return v.Value, true
		}
	}
	return 0, false
}

var (
	logLine = regexp.MustCompile(`^    \w+\.go:\d+: (.*)$`)
	// what benchfmt takes for a configuration line
	pairLine = regexp.MustCompile(`^[a-z][^\sA-Z:]*:(\s|$)`)
)

// checkLogs wants at most nine lines under each benchmark, the last of which
// names an existing result. Nothing else may stand between header and PASS.
func checkLogs(t *testing.T, stdout string) {
	t.Helper()
	var block []string
	blocks := 0
	finish := func() {
		if block == nil {
			return
		}
		blocks++
		assert.LessOrEqual(t, len(block), 10, "%q", block) // its own title and nine lines
		for i, line := range block[1:] {
			m := logLine.FindStringSubmatch(line)
			if !assert.NotNil(t, m, "%q", line) {
				continue
			}
			if i < len(block)-2 {
				assert.NotRegexp(t, pairLine, m[1])
				continue
			}
			path, ok := strings.CutPrefix(m[1], "result: ")
			if assert.True(t, ok, "the last line is %q", m[1]) &&
				assert.True(t, filepath.IsAbs(path)) {
				text, err := os.ReadFile(path)
				require.NoError(t, err)
				_, err = result.Parse(text)
				assert.NoError(t, err)
				assert.FileExists(t, filepath.Join(filepath.Dir(path), "summary.txt"))
			}
		}
		block = nil
	}
	header, body := true, bufio.NewScanner(strings.NewReader(stdout))
	for body.Scan() {
		line := body.Text()
		switch {
		case strings.HasPrefix(line, "--- BENCH: "):
			finish()
			block = []string{line}
		case strings.HasPrefix(line, "Benchmark"):
			finish()
			header = false
		case strings.HasPrefix(line, " ") && block != nil:
			block = append(block, line)
		case header && (pairLine.MatchString(line) || strings.HasPrefix(line, "Unit ")):
		case line == "PASS":
			finish()
			assert.False(t, body.Scan(), "after PASS: %q", body.Text())
		default:
			t.Errorf("stray line %q", line)
		}
	}
	assert.NotZero(t, blocks)
}

// TestGoTestJSON concatenates the output events of the package, which split result lines, and reads
// the whole. The go command merges both streams, so this also shows that nothing is written to either
// while a benchmark runs.
func TestGoTestJSON(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	endToEnd(t)
	root, err := filepath.Abs(moduleRoot)
	require.NoError(t, err)
	b.dir, b.command = os.TempDir(), []string{"go", "test", "-C", root, "-json", "./benchmarks"}
	rel := func(path string) string { // as if typed in root
		path, err := filepath.Rel(root, path)
		require.NoError(t, err)
		return path
	}
	o := b.ok(append([]string{"-run=^$", "-bench=MaxStorageStress|MultiTurn|BurstGPT",
		"-count=2", "-benchtime=4x", "-cache-dir=" + rel(b.cache), "-results-dir=" + rel(b.results)},
		b.micro()...)...)
	var events strings.Builder
	for line := range strings.Lines(o.stdout) {
		var event struct{ Action, Package, Output string }
		require.NoError(t, json.Unmarshal([]byte(line), &event), line)
		if event.Action == "output" {
			events.WriteString(event.Output)
		}
	}
	text := events.String()
	assert.Contains(t, text, "result: "+b.results)
	for _, path := range resultFiles(t, b.results) {
		assert.Equal(t, b.cache, parameter(t, readResult(t, path), "cache-dir"))
	}
	results, units := parse(t, text)
	assert.Len(t, results, 2*2)
	assert.Equal(t, "better=higher", units["req/s"])
	for _, r := range results {
		config := make(map[string]string)
		for _, c := range r.Config {
			if c.File {
				config[c.Key] = string(c.Value)
			}
		}
		assert.Subset(t, slices.Collect(maps.Keys(config)),
			[]string{"kvbench-format", "division", "seed", "model", "storage-capacity-gb",
				"goos", "goarch", "pkg", "cpu"})
		for _, place := range []string{"cache-dir", "results-dir", "config", "burst-trace-path"} {
			assert.NotContains(t, config, place, "outputs of two places must compare")
		}
	}
	assert.Contains(t, text, "skipped benchmarks\n  BenchmarkBurstGPT: needs -burst-trace-path\n")
	_, epilogue, found := strings.Cut(text, "\nPASS\n")
	assert.True(t, found)
	assert.Contains(t, epilogue, "\nquote\n  benchmark ", "the summary comes last")
	for line := range strings.Lines(epilogue) {
		assert.NotRegexp(t, pairLine, line, "benchfmt reads no configuration there")
	}
	// README's command. Of a package that passes the go command would print nothing.
	b.command = []string{"go", "test", "-C", root, "./benchmarks"}
	o = b.run("-help-parameters", "knee")
	assert.Contains(t, o.stdout, "\nKnee ")
	assert.Contains(t, o.stdout, "ignore FAIL")
}

// comparison runs benchstat, a tool of go.mod, over outputs.
func comparison(t *testing.T, files ...string) string {
	t.Helper()
	out, err := exec.Command("go",
		append([]string{"run", "golang.org/x/perf/cmd/benchstat"}, files...)...).CombinedOutput()
	require.NoError(t, err, string(out))
	return string(out)
}
