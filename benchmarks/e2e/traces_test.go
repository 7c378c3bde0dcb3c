package e2e

import (
	"compress/gzip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench/result"
)

// packed writes a copy of a file in testdata, compressed as its name says.
func packed(t testing.TB, source, to string) string {
	t.Helper()
	text, err := os.ReadFile(data(t, source))
	require.NoError(t, err)
	f, err := os.Create(to)
	require.NoError(t, err)
	if strings.HasSuffix(to, ".gz") {
		w := gzip.NewWriter(f)
		_, err = w.Write(text)
		require.NoError(t, err)
		require.NoError(t, w.Close())
	} else {
		w, err := zstd.NewWriter(f)
		require.NoError(t, err)
		_, err = w.Write(text)
		require.NoError(t, err)
		require.NoError(t, w.Close())
	}
	require.NoError(t, f.Close())
	return to
}

func TestTracesPlainAndCompressed(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	azure := packed(t, "azure-small.csv", filepath.Join(b.work, "azure.csv.gz"))
	burst := packed(t, "burstgpt-v3-small.csv", filepath.Join(b.work, "burst.csv.zst"))
	var requests []int64
	for _, args := range [][]string{
		{"-test.bench=AzureTrace", "-azure-trace-path", azure},
		{"-test.bench=BurstGPT", "-burst-trace-path", data(t, "burstgpt-v3-small.csv")},
		{"-test.bench=BurstGPT", "-burst-trace-path", burst},
	} {
		require.NoError(t, os.RemoveAll(b.results))
		b.ok(append(append(append(b.micro(), b.places()...), "-test.benchtime=1m"), args...)...)
		r := theResult(t, b.results)
		assert.Equal(t, result.EndedByInput, r.EndedBy, "the end of the input ends the window")
		require.NotNil(t, r.Input)
		assert.Zero(t, r.Input.Malformed)
		assert.Equal(t, r.Requests.Completed, r.Input.Rows-r.Input.Failed,
			"every row completes, except the failed ones")
		requests = append(requests, r.Requests.Completed)
	}
	assert.EqualValues(t, 20, requests[0])
	assert.Equal(t, requests[1], requests[2])
	assert.False(t, exists(b.cache))
}

func TestTracesThatCannotBeRead(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	broken := filepath.Join(b.work, "broken.csv")
	require.NoError(t, os.WriteFile(broken,
		[]byte("TIMESTAMP,ContextTokens,GeneratedTokens\n2024-01-02 "+
			"03:04:05.9025822,6471,25\nnonsense\n"), 0o644))
	args := append(append(b.micro(), b.places()...), "-test.bench=AzureTrace", "-test.benchtime=1m",
		"-azure-trace-path", broken)
	o := b.run(args...)
	assert.Equal(t, exitFailed, o.code)
	assert.Contains(t, o.stdout, "broken.csv:3")
	assert.False(t, exists(b.cache))
	require.NoError(t, os.RemoveAll(b.results))
	b.ok(append(args, "-trace-allow-malformed")...)
	assert.EqualValues(t, 1, theResult(t, b.results).Input.Malformed)
}

// The replay begins later in the trace, and the result has the number of skipped rows.
func TestTraceStart(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	const skipped = 2
	args := append(append(b.micro(), b.places()...), "-test.bench=BlockTrace", "-test.benchtime=1m",
		"-block-trace-path", data(t, "mooncake-small.jsonl"), "-trace-start", "400ms")
	o := b.ok(args...)
	r := theResult(t, b.results)
	assert.EqualValues(t, skipped, r.Input.Skipped)
	assert.Equal(t, r.Requests.Completed, r.Input.Rows-r.Input.Failed-skipped)
	assert.Contains(t, o.stderr, "before the start of the replay")
	assert.Contains(t, o.stdout, "trace-start: 400ms", "results with another start are others")

	require.NoError(t, os.RemoveAll(b.results))
	o = b.run(append(args, "-trace-start", "5h")...)
	assert.Equal(t, exitFailed, o.code)
	assert.Contains(t, o.stdout,
		"before the start of the replay at 5h0m0s: start earlier (-trace-start)")
	assert.False(t, exists(b.cache))
}

// A result identifies the recording by its content, not by its path.
func TestAResultTellsTheContentOfItsTrace(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	played := func(path string) *result.TraceFiles {
		require.NoError(t, os.RemoveAll(b.results))
		b.ok(append(append(b.micro(), b.places()...), "-test.bench=AzureTrace",
			"-test.benchtime=5x", "-azure-trace-path", path)...)
		files := theResult(t, b.results).TraceFiles
		require.NotNil(t, files)
		return files
	}
	text, err := os.ReadFile(data(t, "azure-small.csv"))
	require.NoError(t, err)
	copied := filepath.Join(b.work, "copy.csv")
	require.NoError(t, os.WriteFile(copied, text, 0o600))
	first := played(data(t, "azure-small.csv"))
	assert.EqualValues(t, len(text), first.Bytes)
	assert.Equal(t, first.Bytes, first.HashedBytes)
	assert.Equal(t, first, played(copied))
}
