package report

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench/result"
	"kvbench/tools/golden"
)

// parsed reads a result.
func parsed(t *testing.T, path ...string) *result.Result {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(path...))
	require.NoError(t, err)
	r, err := result.Parse(text)
	require.NoError(t, err)
	return r
}

// fixture reads a result that package record made and compares.
func fixture(t *testing.T, name string) *result.Result {
	return parsed(t, "..", "record", "testdata", name)
}

// stored is a run on an object store, which package objects made and compares.
func stored(t *testing.T) *result.Result {
	return parsed(t, "..", "..", "tools", "golden", "testdata", "objects.json")
}

func summaryOf(t *testing.T, r *result.Result) string {
	t.Helper()
	var b strings.Builder
	require.NoError(t, WriteSummary(&b, r))
	assert.NotContains(t, b.String(), "%!")
	assert.NotContains(t, b.String(), "\n\n\n")
	return b.String()
}

func TestGolden(t *testing.T) {
	whole := fixture(t, "result.json")
	text := summaryOf(t, whole)
	assert.LessOrEqual(t, strings.Count(text, "\n"), 88)
	golden.Check(t, "summary.txt", text)
	golden.Check(t, "summary_parts.txt", summaryOf(t, fixture(t, "result_parts.json")))
	golden.Check(t, "summary_objects.txt", summaryOf(t, stored(t)))
	var b strings.Builder
	require.NoError(t, WriteShort(&b, whole))
	golden.Check(t, "short.txt", b.String())
}

// After a signal the result does not wait for operations, so their number is unknown and not 0.
func TestSummaryOfAnInterruption(t *testing.T) {
	r := fixture(t, "result.json")
	r.EndedBy = result.EndedBySignal
	text := summaryOf(t, r)
	assert.NotContains(t, text, "cut off at the end")
	assert.Contains(t, text, "operations that were in flight when it was interrupted are not counted")
}

func TestSummaryOfNothing(t *testing.T) {
	r := &result.Result{Error: "no request arrived\nand no answer", Notice: result.ClosedNotice,
		IO: result.IO{CacheDir: "a\nb"}} // a directory may have any name
	r.Harness.Verdict.Kind, r.Harness.Verdict.Reason = result.NoVerdict, "there was no window"
	text := summaryOf(t, r)
	assert.Contains(t, text, "error       no request arrived\n            and no answer\n")
	assert.Contains(t, text, "MLPerf Storage v3.0 parameters, not an MLPerf result")
	assert.Contains(t, text, `a\nb`)
	assert.Contains(t, LogLines(r), "no verdict, because there was no window")
	var b strings.Builder
	require.NoError(t, WriteShort(&b, r))
	assert.Contains(t, b.String(), "no request arrived")
	r.Parameters = []result.Parameter{{Name: "engine", Value: "mooncake", Origin: "flag"},
		{Name: "read-threads", Value: "0", Origin: "layout mooncake-bucket"}}
	assert.Contains(t, summaryOf(t, r), "engine      mooncake: read-threads one per request\n")
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("no space left") }

func TestWriteErrors(t *testing.T) {
	require.ErrorContains(t, WriteSummary(brokenWriter{}, fixture(t, "result.json")),
		"no space left")
}

// The log of a removal reports it, and no rates of a storage.
func TestLogOfARemoval(t *testing.T) {
	lines := strings.Join(LogLines(removal()), "\n")
	assert.Contains(t, lines, "64 files, 1 GiB in all, were removed: 1600 files/s, 25 GiB/s freed")
	assert.NotContains(t, lines, "storage moved")
}
