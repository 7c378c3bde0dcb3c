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

// fixture reads a result that package record made and pins.
func fixture(t *testing.T, name string) *result.Result {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "record", "testdata", name))
	require.NoError(t, err)
	r, err := result.Parse(text)
	require.NoError(t, err)
	return r
}

func summaryOf(t *testing.T, r *result.Result) string {
	t.Helper()
	var b strings.Builder
	require.NoError(t, WriteSummary(&b, r))
	assert.NotContains(t, b.String(), "%!")
	return b.String()
}

func TestSummaryGolden(t *testing.T) {
	text := summaryOf(t, fixture(t, "result.json"))
	assert.LessOrEqual(t, strings.Count(text, "\n"), 85)
	assert.NotContains(t, text, "P95 <",
		"the Python benchmark's storage health is in the JSON alone")
	golden.Check(t, "summary.txt", text)
}

func TestSummaryOfTheParts(t *testing.T) {
	text := summaryOf(t, fixture(t, "result_parts.json"))
	golden.Check(t, "summary_parts.txt", text)
	first, _, _ := strings.Cut(text, "\n")
	assert.Contains(t, first, "SIMULATED", "nobody reads further to find out")
}

func TestSummaryOfTheClosedDivision(t *testing.T) {
	r := fixture(t, "result.json")
	r.Notice = result.ClosedNotice
	assert.Contains(t, summaryOf(t, r), "MLPerf Storage v3.0 parameters, not an MLPerf result")
}

// A benchmark of single operations has no requests, no load and no lookups.
func TestSummaryOfOperations(t *testing.T) {
	text := summaryOf(t, &result.Result{
		Benchmark: "Tier", CompletionUnit: result.UnitOperation, WindowNS: 1e9,
		Requests:      result.RequestTotals{Operations: 30},
		DeviceWitness: result.Witness{Reason: "tmpfs has no device"},
	})
	assert.Contains(t, text, "30 operations")
	assert.Contains(t, text, "no byte counts: tmpfs has no device")
	assert.NotContains(t, text, "requests/s")
}

func TestSummaryOfNothing(t *testing.T) {
	assert.Contains(t, summaryOf(t, &result.Result{Error: "no request arrived"}), "error")
}

func TestValidationWithoutANumberIsNotJudged(t *testing.T) {
	r := fixture(t, "result_parts.json")
	r.Recording.ReadWriteRatio = result.NewCheck(nil, new(2.5))
	assert.Regexp(t, `read/write ratio\s+2.50\s+–\s+–\s+not judged`, summaryOf(t, r))
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("no space left") }

func TestSummaryTellsWriteErrors(t *testing.T) {
	require.ErrorContains(t, WriteSummary(brokenWriter{}, fixture(t, "result.json")),
		"no space left")
}
