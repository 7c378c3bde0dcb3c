package requests

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench"
	"kvbench/kvbench/report"
	"kvbench/kvbench/result"
)

// A window that ends before a block trace has its part's hits and not the trace's: an input line, a
// warning and no hit ratio on the line say so.
func TestAPartOfATraceIsNotTakenForTheTrace(t *testing.T) {
	run := func(change func(*runConfig)) (r *result.Result, summary string, onLine bool) {
		cfg := blockConfig(smallTrace, 4)
		cfg.Storage.StorageBytes = 1 << 30
		change(&cfg)
		r, err := simulateLoad(t.Context(), cfg, kvbench.SimConfig{Device: sumsDevice})
		require.NoError(t, err)
		var b strings.Builder
		require.NoError(t, report.WriteSummary(&b, r))
		for _, m := range r.Metrics() {
			onLine = onLine || strings.HasSuffix(m.Unit, "hit-ratio")
		}
		return r, b.String(), onLine
	}
	whole, text, onLine := run(func(*runConfig) {})
	assert.EqualValues(t, 60, whole.Input.Rows)
	assert.Nil(t, whole.Input.TotalRows)
	assert.True(t, onLine)
	assert.NotRegexp(t, `the first \d`, text)

	cut, text, onLine := run(func(c *runConfig) { c.Window = 3 * time.Millisecond })
	require.Equal(t, result.EndedByDeadline, cut.EndedBy)
	assert.Less(t, cut.Input.Rows, int64(60))
	assert.EqualValues(t, 60, *cut.Input.TotalRows)
	assert.False(t, onLine, "how much it was depends on the drive")
	assert.Regexp(t, `input\s+the first \d+ rows of 60 \(\d+`, text)
	assert.Regexp(t, `blocks\s+of the part that was replayed, `, text)
	assert.Regexp(t, `warning\s+only the first \d+ rows of 60 \(.* %\) of the trace were`, text)

	_, text, onLine = run(func(c *runConfig) { c.Limit = 20 })
	assert.True(t, onLine, "that many were asked for")
	assert.Contains(t, text, "because -benchtime Nx ended the run: hit ratios are those of this "+
		"part and not of the trace\n")
}
