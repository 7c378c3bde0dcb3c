package report

import (
	"os"
	"path/filepath"
	"slices"
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
	text, err := Summary(r)
	require.NoError(t, err)
	assert.NotContains(t, text, "%!")
	assert.NotContains(t, text, "\n\n\n")
	return text
}

func TestGolden(t *testing.T) {
	whole := fixture(t, "result.json")
	text := summaryOf(t, whole)
	assert.LessOrEqual(t, strings.Count(text, "\n"), 88)
	golden.Check(t, "summary.txt", text)
	golden.Check(t, "summary_parts.txt", summaryOf(t, fixture(t, "result_parts.json")))
	golden.Check(t, "summary_objects.txt", summaryOf(t, stored(t)))
}

// The order of reading holds for results that have other sections, and their rows share columns.
func TestJoin(t *testing.T) {
	joined := Join([][]Section{Sections(stored(t)), nil, Sections(fixture(t, "result_parts.json"))})
	var titles []string
	for _, j := range joined {
		titles = append(titles, j.Title)
		for _, row := range j.Rows {
			assert.Len(t, row, len(j.Columns))
		}
	}
	want := "Simulation Autoscaling Settings Replay Verdict Objects Endpoints Tiers Harness"
	assert.Equal(t, strings.Fields(want), slices.DeleteFunc(titles, func(s string) bool {
		return !strings.Contains(want, s) || strings.Contains(s, " ")
	}))
	column := func(name string) Column { return Column{Name: name} }
	one := Section{Columns: []Column{column("a"), column("b")}, Rows: [][]any{{1, 2}}}
	other := Section{Columns: []Column{column("c"), column("a")}, Rows: [][]any{{3, 4}}}
	both := Join([][]Section{{one}, {other}})[0]
	assert.Equal(t, []Column{column("a"), column("b"), column("c")}, both.Columns)
	assert.Equal(t, [][]any{{1, 2, ""}, {4, "", 3}}, both.Rows)
	assert.Equal(t, []int{0, 1}, both.RowOf)
}

// A complete trial near the median stands for all; the first where none is complete.
func TestTypical(t *testing.T) {
	trial := func(rate float64, status string) *result.Result {
		return &result.Result{Status: status, Tiers: []result.Tier{{Level: "storage",
			Read: result.TierTraffic{Bytes: 1, BytesPerSecond: &rate}}}}
	}
	a, b, c, d := trial(9, result.StatusComplete), trial(5, result.StatusFailed),
		trial(1, result.StatusComplete), trial(2, result.StatusComplete)
	assert.Nil(t, Typical(nil))
	assert.Same(t, b, Typical([]*result.Result{b, b}))
	assert.Same(t, a, Typical([]*result.Result{b, a, c}), "as near as the other")
	assert.Same(t, d, Typical([]*result.Result{b, a, c, d}))
}

// Looking up saves nothing, and costs nothing.
func TestNothingIsSaved(t *testing.T) {
	r := fixture(t, "result.json")
	r.FirstToken.Sums = result.FirstTokenTime{ComputeAll: 22e6, Compute: 22e6, Load: 176}
	r.Derive()
	assert.Zero(t, *r.FirstToken.SavedRatio)
}
