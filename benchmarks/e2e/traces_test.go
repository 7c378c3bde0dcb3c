package e2e

import (
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"slices"
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
	var requests [2][]int64
	for i, bench := range []struct{ name, flag, source string }{
		{"AzureTrace", "-azure-trace-path", "azure-small.csv"},
		{"BurstGPT", "-burst-trace-path", "burstgpt-v3-small.csv"},
	} {
		for _, path := range []string{
			data(t, bench.source),
			packed(t, bench.source, filepath.Join(b.work, bench.source+".gz")),
			packed(t, bench.source, filepath.Join(b.work, bench.source+".zst")),
		} {
			require.NoError(t, os.RemoveAll(b.results))
			b.ok(append(append(b.micro(), b.places()...), "-test.bench="+bench.name,
				"-test.benchtime=1m", bench.flag, path)...)
			r := theResult(t, b.results)
			assert.Equal(t, result.EndedByInput, r.EndedBy, "the end of the input ends the window")
			require.NotNil(t, r.Input)
			assert.Zero(t, r.Input.Malformed)
			assert.Equal(t, r.RequestsCompleted, r.Input.Rows-r.Input.Failed,
				"every row is served, but for failed ones")
			requests[i] = append(requests[i], r.RequestsCompleted)
		}
	}
	assert.Equal(t, []int64{20, 20, 20}, requests[0])
	assert.Equal(t, requests[1][0], requests[1][1])
	assert.Equal(t, requests[1][0], requests[1][2])
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

	// Each of these is refused before the run, by file and line with the reason.
	for text, want := range map[string]string{
		"": "blocks.jsonl has no rows",
		`{"timestamp": 1, "input": "q", "output": "a"}`: "no usable row: 1 of 1 are malformed, 0 " +
			"have no answer; the first is " + filepath.Join(b.work, "blocks.jsonl") + ":1: messages, " +
			"input or text_input without hash_ids",
	} {
		path := filepath.Join(b.work, "blocks.jsonl")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
		has(t, b.refused(append(b.places(), "-test.bench=BlockTrace", "-block-trace-path="+path)...),
			want)
	}
}

// The replay begins later in the trace, and the result says what it passed over.
func TestTraceStart(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for _, c := range []struct {
		bench, flag, source, start string
		skipped                    int64
	}{
		{"AzureTrace", "-azure-trace-path", "azure-small.csv", "2.5s", 5},
		{"BurstGPT", "-burst-trace-path", "burstgpt-v3-small.csv", "10s", 4},
		{"BlockTrace", "-block-trace-path", "mooncake-small.jsonl", "400ms", 2},
	} {
		args := append(append(b.micro(), b.places()...), "-test.bench="+c.bench,
			"-test.benchtime=1m", c.flag, data(t, c.source), "-trace-start", c.start)
		require.NoError(t, os.RemoveAll(b.results))
		o := b.ok(args...)
		r := theResult(t, b.results)
		assert.Equal(t, c.skipped, r.Input.Skipped, c.bench)
		assert.Equal(t, r.RequestsCompleted, r.Input.Rows-r.Input.Failed-c.skipped, c.bench)
		assert.Contains(t, o.stderr, "before the start of the replay")
		assert.Contains(t, o.stdout, "trace-start: "+c.start,
			"results with another start are others")

		require.NoError(t, os.RemoveAll(b.results))
		o = b.run(append(args, "-trace-start", "5h")...)
		assert.Equal(t, exitFailed, o.code)
		assert.Contains(t, o.stdout,
			"before the start of the replay at 5h0m0s: start earlier (-trace-start)")
		assert.False(t, exists(b.cache))
	}
}

// A result tells which recording was played, wherever it lay.
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
	copied, other := filepath.Join(b.work, "copy.csv"), filepath.Join(b.work, "other.csv")
	require.NoError(t, os.WriteFile(copied, text, 0o600))
	require.NoError(t, os.WriteFile(other, slices.Concat(text, text[lastLine(text):]), 0o600))
	first := played(data(t, "azure-small.csv"))
	assert.EqualValues(t, len(text), first.Bytes)
	assert.Equal(t, first.Bytes, first.HashedBytes)
	assert.Equal(t, first, played(copied))
	b.ok(append(append(b.micro(), "-results-dir", filepath.Join(b.work, "more")),
		"-test.bench=IOTraceReplay", "-io-trace-replay", data(t, "iotrace-small.csv"))...)
	assert.NotEmpty(t, theResult(t, filepath.Join(b.work, "more")).TraceFiles.SHA256)
	assert.NotEqual(t, first.SHA256, played(other).SHA256)
}

// lastLine is where the last line of a text begins.
func lastLine(text []byte) int {
	return bytes.LastIndexByte(bytes.TrimRight(text, "\n"), '\n') + 1
}
