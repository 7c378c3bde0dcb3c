package view

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"

	"kvbench/kvbench/result"
)

func TestCurvesOfAKnee(t *testing.T) {
	depths, curves := KneeCurves(&result.Result{PlainIO: &result.PlainIO{Knee: &result.Knee{
		Points: []result.KneePoint{{RequestBytes: 4096, InFlight: 1, Rate: 1},
			{RequestBytes: 4096, InFlight: 4, Rate: 4, P99NS: new(int64(7))},
			{RequestBytes: 16384, InFlight: 1, Rate: 3}, {RequestBytes: 16384, InFlight: 2,
				Rate: 5}}}}})
	assert.Equal(t, []float64{1, 2, 4}, depths)
	if assert.Len(t, curves, 2) {
		assert.Equal(t, "4 KiB", curves[0].Name)
		assert.Equal(t, 1.0, curves[0].Rate[0])
		assert.True(t, math.IsNaN(curves[0].Rate[1]), "which nobody measured")
		assert.Equal(t, 7.0, curves[0].P99[2])
		assert.Equal(t, "16 KiB", curves[1].Name)
		assert.True(t, math.IsNaN(curves[1].P99[0]))
	}
	_, curves = KneeCurves(&result.Result{PlainIO: &result.PlainIO{Knee: &result.Knee{
		Points: []result.KneePoint{{RequestBytes: 3000}, {RequestBytes: -1}, {}}}}})
	assert.Len(t, curves, 3, "of a file that somebody has edited")
	depths, curves = KneeCurves(&result.Result{})
	assert.Empty(t, depths)
	assert.Empty(t, curves)
}
