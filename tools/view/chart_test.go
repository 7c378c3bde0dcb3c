package view

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestNothingToDraw(t *testing.T) {
	for _, c := range []Chart{{}, {Lines: []Line{{}}},
		{Lines: []Line{{X: []float64{1}, Y: []float64{math.NaN()}}}},
		{Y: Axis{Log: true}, Lines: []Line{{X: []float64{1, 2}, Y: []float64{0, -1}}}}} {
		assert.Empty(t, shown(false, c))
	}
}
