package view

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench/result"
	"kvbench/tools/load"
	"kvbench/tools/stats"
)

func TestCurvesOfAKnee(t *testing.T) {
	draw := func(r result.Result) []Chart {
		return kneeFigures([]trial{{0, &load.Record{Result: &r}}},
			&stats.Table{Runs: []string{"a"}})
	}
	charts := draw(result.Result{PlainIO: &result.PlainIO{Knee: &result.Knee{
		Points: []result.KneePoint{{RequestBytes: 4096, InFlight: 1, Rate: 1024},
			{RequestBytes: 4096, InFlight: 4, Rate: 4096, P99NS: new(int64(7e6))},
			{RequestBytes: 16384, InFlight: 1, Rate: 3}, {RequestBytes: 16384, InFlight: 2,
				Rate: 5}}}}})
	require.Len(t, charts, 2)
	rate, p99 := charts[0], charts[1]
	assert.Equal(t, "rate (KiB/s)", rate.Y.Label)
	assert.Equal(t, []Tick{{1, "1"}, {2, "2"}, {4, "4"}}, rate.X.Ticks)
	require.Len(t, rate.Lines, 2)
	assert.Equal(t, "4 KiB, 16 KiB", rate.Lines[0].Name+", "+rate.Lines[1].Name)
	assert.Equal(t, Values{1, 2, 4}, rate.Lines[0].X)
	assert.Equal(t, 1.0, rate.Lines[0].Y[0])
	assert.True(t, math.IsNaN(rate.Lines[0].Y[1]), "not measured")
	assert.Equal(t, 7.0, p99.Lines[0].Y[2])
	assert.True(t, math.IsNaN(p99.Lines[1].Y[0]))
	edited := draw(result.Result{PlainIO: &result.PlainIO{Knee: &result.Knee{
		Points: []result.KneePoint{{RequestBytes: 3000}, {RequestBytes: -1}, {}}}}})
	assert.Len(t, edited[0].Lines, 3, "of a file that was edited")
	assert.Empty(t, draw(result.Result{}))
}
