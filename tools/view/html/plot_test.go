package html

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"kvbench/tools/golden"
)

func TestGolden(t *testing.T) {
	x := []float64{1, 2, 4, 8}
	for name, c := range map[string]Chart{
		"lines.svg": {Title: "a <b>", X: Axis{Label: "users (log scale)", Log: true, Ticks: []Tick{{1, "1"}, {2, "2"}, {8, "8"}}},
			Y: Axis{Label: "GiB/s", Zero: true}, Marks: []Mark{{2, "knee"}, {8, "end"}}, Lines: []Line{
				{Name: "read", X: x, Y: []float64{1, 2, math.NaN(), 3.5}, Dots: true}, {Name: "write", Colour: 1, Dash: 1, Step: true, X: x, Y: []float64{1, 1, 2, 2}}}},
		"bars.svg": {X: Axis{Label: "KiB", Ticks: []Tick{{0, "4\nread"}, {1, "8"}}}, Y: Axis{Label: "%"}, Bars: []Bars{{Name: "a", Y: []float64{10, 90}}, {Name: "b", Y: []float64{0, 100}}}},
		"dots.svg": {X: Axis{Label: "tier"}, Y: Axis{Label: "ms", Log: true}, Lines: []Line{{Name: "p", Apart: true, X: x, Y: []float64{0.001, 10, 1000, 0}}}},
	} {
		golden.Check(t, name, strings.ReplaceAll(c.SVG(), ">", ">\n"))
	}
}

func TestNothingToDraw(t *testing.T) {
	for _, c := range []Chart{{}, {Lines: []Line{{}}}, {Lines: []Line{{X: []float64{1}, Y: []float64{math.NaN()}}}},
		{Y: Axis{Log: true}, Lines: []Line{{X: []float64{1, 2}, Y: []float64{0, -1}}}}} {
		assert.Empty(t, c.SVG())
	}
}

// Odd ranges give a drawing without odd numbers.
func TestDegenerateRanges(t *testing.T) {
	for _, y := range [][]float64{{0, 0}, {5, 5}, {1e-300, 1e300}, {-1, -5}, {1e18, 1e18 + 4096}} {
		for _, log := range []bool{false, true} {
			for _, zero := range []bool{false, true} {
				svg := Chart{X: Axis{Zero: zero}, Y: Axis{Log: log, Zero: zero}, Lines: []Line{{X: []float64{1, 1}, Y: y}}}.SVG()
				assert.NotContains(t, svg, "NaN")
				assert.NotContains(t, svg, "Inf")
				assert.Less(t, len(svg), 200_000)
			}
		}
	}
}

func TestTicks(t *testing.T) {
	labels := func(ticks []Tick) (out []string) {
		for _, x := range ticks {
			out = append(out, x.Label)
		}
		return out
	}
	assert.Equal(t, []string{"0", "0.5", "1.0", "1.5"}, labels(Axis{}.ticks(scale{lo: 0, hi: 1.7, from: 0, to: 100}, 4)))
	assert.Equal(t, []string{"0.1", "1", "10", "100"}, labels(Axis{}.ticks(scale{lo: -1, hi: 2, log: true}, 4)))
	assert.Equal(t, []string{"10", "20", "30", "50"}, labels(Axis{}.ticks(scale{lo: 1, hi: 1.8, log: true}, 4)))
}
