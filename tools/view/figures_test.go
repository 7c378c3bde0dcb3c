package view

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench/result"
	"kvbench/tools/load"
	"kvbench/tools/stats"
)

// Loading and computing, from where loading begins to pay: 10 ms and 20 µs a token against 100 µs a
// token are equal at 125 tokens.
func TestLoadingIsDrawnWithComputing(t *testing.T) {
	r := &result.Result{FirstToken: &result.FirstToken{
		Prefill: result.PrefillCost{PerToken: 100e-6},
		Loading: []result.LoadingTime{{Tokens: 1000, P50NS: new(30e6)},
			{Tokens: 4000, P50NS: new(90e6), P95NS: new(200e6)}},
		BreakEven: result.BreakEvens{P50: &result.BreakEven{Answer: result.LoadFrom,
			Tokens: new(int64(125))}}}}
	table := &stats.Table{Runs: []string{"a"}, Labels: []string{"a"}}
	c := firstTokenFigures([]trial{{0, &load.Record{Result: r}}}, table)[0]
	require.Len(t, c.Lines, 3)
	assert.Equal(t, Values{1000, 4000}, c.Lines[0].X)
	assert.InDeltaSlice(t, []float64{30, 90}, c.Lines[0].Y, 1e-9)
	assert.Equal(t, Values{4000}, c.Lines[1].X, "too few loads of the shorter ones")
	assert.InDeltaSlice(t, []float64{125, 250, 500, 1000, 2000, 4000}, c.Lines[2].X, 0)
	assert.InDelta(t, 12.5, c.Lines[2].Y[0], 1e-9)
	assert.InDelta(t, 400, c.Lines[2].Y[5], 1e-9)

	r.FirstToken = nil // misses were free
	assert.True(t, firstTokenFigures([]trial{{0, &load.Record{Result: r}}}, table)[0].empty())
}
