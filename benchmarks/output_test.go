package benchmarks

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench/merge"
	"kvbench/kvbench/params"
	"kvbench/kvbench/result"
	"kvbench/tracing"
)

// A binary without a revision is reported before hours are measured for a submission.
func TestNoCodeImage(t *testing.T) {
	option, _ := params.Benchmark("MaxStorageStress")
	plan := func(division params.Division) []*params.Values {
		return []*params.Values{{Division: division, Bench: option}}
	}
	assert.Contains(t, noImage(plan(params.Closed), "unknown"),
		"does not know its revision, so that kvreport submission can make no code image; measure "+
			"with go test ./benchmarks in a git checkout, a binary of make dist")
	assert.Empty(t, noImage(plan(params.Closed), strings.Repeat("0", 40)))
	assert.Empty(t, noImage(plan(params.Open), "unknown"))
}

func TestAPathIsOneWordOfAShell(t *testing.T) {
	assert.Equal(t, "/mnt/nvme0/kv-cache_1/rank_0", word("/mnt/nvme0/kv-cache_1/rank_0"),
		"a plain one is left as people type it")
	for _, path := range []string{"/mnt/two words", "/mnt/it's", "/mnt/$HOME/*", "/mnt/a;b&c|d", "/mnt/\n",
		"/mnt/~(x)[y]{z}\"`#!\\", ""} {
		out, err := exec.Command("sh", "-c", "printf '<%s>' "+word(path)).Output()
		require.NoError(t, err)
		assert.Equal(t, "<"+path+">", string(out))
	}
}

// -summary long prints one trial of each benchmark, and the trace of one: the first complete one where they
// are alike.
func TestOneTrialHasItsWholeSummary(t *testing.T) {
	of := func(name, status string, trial int) *result.Result {
		return &result.Result{Name: name, Benchmark: name, Status: status, Trial: trial, Count: 4}
	}
	const done, failed = result.StatusComplete, result.StatusFailed
	whole := func(results ...*result.Result) (trials []string) {
		for _, r := range (&session{results: results}).typical() {
			trials = append(trials, fmt.Sprint(r.Name, r.Trial))
		}
		return trials
	}
	assert.Equal(t, []string{"b0", "a1", "c0"}, whole(of("a", failed, 0), of("b", done, 0),
		of("a", done, 1), of("a", done, 2), of("b", failed, 1), of("c", failed, 0)))
	assert.Equal(t, []string{"a0"}, whole(of("a", failed, 0), of("a", failed, 1)))
	assert.Empty(t, whole())
}

// Without -summary long, a traced run shows its diagnosis and each histogram on a line, and an untraced one
// nothing of it.
func TestATracedRunShowsItsPercentiles(t *testing.T) {
	trace := tracing.Trace{Capture: tracing.Capture{Status: tracing.StatusTraced, WindowNS: 1e9}}
	trace.D2CRead = tracing.NewHistogram("us", 15000, []tracing.Bucket{{Range: [2]float64{100, 200}, Count: 100}})
	text, err := json.Marshal(&trace)
	require.NoError(t, err)
	traced := &result.Result{Name: "MultiTurn", Benchmark: "MultiTurn", Status: result.StatusComplete, DeviceLatencyTracing: text}
	plan := &plan{points: []*params.Values{{Summary: "short"}}}
	said := saying(t, (&session{ctx: t.Context(), plan: plan, results: []*result.Result{traced}}).epilogue)
	assert.Contains(t, said, "\ntrace of MultiTurn\n  what limited the device: ")
	assert.Regexp(t, `\n  D2C read +100 samples, p50 [\d.]+ µs, p95 [\d.]+ µs, p99 [\d.]+ µs\n`, said)
	untraced := &result.Result{Name: "RAG", Benchmark: "RAG", Status: result.StatusComplete}
	assert.NotContains(t, saying(t, (&session{ctx: t.Context(), plan: plan, results: []*result.Result{untraced}}).epilogue), "trace of")
}

// Three simulated runs take no second together, and each of them has its result.
func TestResultsOfOneSecondStayApart(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) { // whose time stands still
		var names []string
		for range 3 {
			path := resultPath(&trial{line: &line{v: &params.Values{ResultsDir: dir}},
				name: "Synthetic/io-depth=1"}, "rank_0")
			assert.Regexp(t, merge.Layout, path)
			require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
			require.NoError(t, os.WriteFile(path, nil, 0o644))
			names = append(names, filepath.Base(path))
		}
		now := time.Now().Format("kvcache_results_20060102_150405")
		assert.Equal(t, []string{now + ".json", now + "_2.json", now + "_3.json"}, names)
	})
}

// At a terminal nothing of the testing package's is lost but what benchstat reads.
func TestForPeople(t *testing.T) {
	var shown strings.Builder
	forPeople(&shown, strings.NewReader(`not an MLPerf result
goos: linux
BenchmarkTier/op=read-2         	       1	  41666667 ns/op	 1600826027 read-B/s
--- BENCH: BenchmarkTier/op=read-2
    run.go:301: storage-limited, because
    run.go:304: result: x.json
BenchmarkTier/op=write-2        	--- FAIL: BenchmarkTier/op=write-2
    run.go:257: key: no space left
BenchmarkDataGen-2          	       1	    497783 ns/op	2844126602 copy-B/s
cpus: another line
PASS
BenchmarkTier/op=read-2         	`))
	assert.Equal(t, `not an MLPerf result
--- FAIL: BenchmarkTier/op=write-2
    run.go:257: key: no space left
BenchmarkDataGen-2          	       1	    497783 ns/op	2844126602 copy-B/s
cpus: another line
`, shown.String())
}
