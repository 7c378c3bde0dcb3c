package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench/result"
	"kvbench/workloads/iotrace"
)

// The trace of one seed is the same to the byte, whatever the machine's cores,
// and no storage is touched.
func TestE2EIOTrace(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	args := append(b.micro(), "-test.bench", "MaxStorageStress", "-test.benchtime", "20s",
		"-division", "open", "-results-dir", b.results)
	b.env = append(b.env, "KVBENCH_CACHE_DIR="+b.cache)
	var first []byte
	for i, more := range [][]string{{"-test.cpu", "1"}, {"-test.cpu", "2", "-test.count", "2"}} {
		path := filepath.Join(b.work, "out.csv.zst")
		o := b.ok(append(append([]string{"-io-trace-log", path}, args...), more...)...)
		assert.Contains(t, o.stdout, "simulated: true\n")
		assert.Contains(t, o.stdout, "simulated in virtual time")
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		if i == 0 {
			first = text
			r := theResult(t, b.results)
			assert.Equal(t, result.StatusComplete, r.Status)
			require.NotNil(t, r.Simulation)
			assert.Positive(t, r.Simulation.TraceRows)
		}
		assert.Equal(t, first, text, "%v", more)
	}
	assert.False(t, exists(b.cache), "the cache directory was not made")

	o := b.run(append([]string{"-io-trace-log", filepath.Join(b.work, "no", "dir.csv")},
		args...)...)
	assert.Equal(t, 2, o.code)
	assert.Contains(t, o.stderr, "-io-trace-log")
}

// A trace of ours and one of the Python benchmark's replay with every byte
// verified.
func TestE2EReplay(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	trace := filepath.Join(b.work, "out.csv.zst")
	b.ok(append(b.micro(), "-test.bench", "Synthetic", "-test.benchtime", "2s", "-io-trace-log",
		trace, "-results-dir", b.results)...)
	python, err := filepath.Abs(testdata + "/iotrace-small.csv")
	require.NoError(t, err)
	for name, path := range map[string]string{"ours": trace, "python": python} {
		results := filepath.Join(b.work, name)
		o := b.ok("-test.bench", "IOTraceReplay", "-test.benchtime", "60s", "-io-trace-replay",
			path, "-verify", "full", "-cache-dir", b.cache,
			"-results-dir", results, "-storage-capacity-gb", "0.25")
		assert.Contains(t, o.stdout, "BenchmarkIOTraceReplay")
		r := theResult(t, results)
		assert.Equal(t, result.EndedByInput, r.EndedBy, name)
		require.NotNil(t, r.Replay)
		assert.Positive(t, r.Replay.Reads)
		assert.Zero(t, r.Requests.FailedOperations)
		if name == "python" {
			assert.EqualValues(t, 1, r.Replay.UnwrittenReads)
			assert.EqualValues(t, 2, r.Replay.Skipped)
			assert.EqualValues(t, 6, r.Replay.Reads)
			assert.EqualValues(t, 5, r.Replay.Writes)
		}
	}
	bad := filepath.Join(b.work, "bad.csv")
	require.NoError(t, os.WriteFile(bad, []byte(iotrace.Header+"\nnonsense\n"), 0o666))
	o := b.run("-test.bench", "IOTraceReplay", "-io-trace-replay", bad, "-cache-dir", b.cache,
		"-results-dir", b.results, "-storage-capacity-gb", "0.25")
	assert.Equal(t, 1, o.code)
	assert.True(t, strings.Contains(o.stdout, "malformed"), o.stdout)
}

// The number of users that a simulated drive sustains is a fact about so many users and one more,
// whatever number was requested, and the same in the log line, the summary and the JSON.
func TestE2ESustainedUsersHold(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	simulated := func(users int) (*result.Result, outcome) {
		dir := filepath.Join(b.work, strconv.Itoa(users))
		o := b.ok("-test.bench", "MultiTurn", "-division", "open",
			"-test.benchtime", "60s", "-model", "tiny-1b", "-num-users", strconv.Itoa(users),
			"-results-dir", dir, "-simulate-device", "read=10GiB/s,write=5GiB/s")
		return theResult(t, dir), o
	}
	many, o := simulated(30)
	require.NotNil(t, many.Simulation.SustainedUsers)
	n := *many.Simulation.SustainedUsers
	require.Positive(t, n)
	require.Less(t, n, 30)
	text := fmt.Sprintf("it would sustain %d of 30 users: ", n)
	assert.Contains(t, o.stdout, text)
	assert.Contains(t, o.stderr, text)
	assert.Greater(t, *many.Simulation.Outstanding, 30.0)

	so, _ := simulated(n)
	assert.Equal(t, n, *so.Simulation.SustainedUsers)
	assert.LessOrEqual(t, *so.Simulation.Outstanding, float64(n))
	oneMore, _ := simulated(n + 1)
	assert.Equal(t, n, *oneMore.Simulation.SustainedUsers)
}
