package html

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"kvbench/tools/golden"
	"kvbench/tools/view"
)

// svg is a chart as it stands in a page.
func svg(c view.Chart) string {
	var b strings.Builder
	if err := pageTemplate.ExecuteTemplate(&b, "chart", draw(c)); err != nil {
		panic(err)
	}
	return b.String()
}

func TestGolden(t *testing.T) {
	x := []float64{1, 2, 4, 8}
	for name, c := range map[string]view.Chart{
		"lines.svg": {Title: "a <b>", X: view.Axis{Label: "users (log scale)", Log: true,
			Ticks: []view.Tick{{At: 1, Label: "1"}, {At: 2, Label: "2"}, {At: 8, Label: "8"}}},
			Y:     view.Axis{Label: "GiB/s", Zero: true},
			Marks: []view.Mark{{X: 2, Text: "knee"}, {X: 8, Text: "end"}}, Lines: []view.Line{
				{Name: "read", X: x, Y: []float64{1, 2, math.NaN(), 3.5}, Dots: true},
				{Name: "write", Colour: 1, Dash: 1, Step: true, X: x,
					Y: []float64{1, 1, 2, 2}}}},
		"bars.svg": {X: view.Axis{Label: "KiB",
			Ticks: []view.Tick{{At: 0, Label: "4\nread"}, {At: 1, Label: "8"}}},
			Y: view.Axis{Label: "%"}, Bars: []view.Bars{{Name: "a", Y: []float64{10, 90}},
				{Name: "b", Y: []float64{0, 100}}}},
		"heat.svg": {X: view.Axis{Label: "s", Zero: true}, Y: view.Axis{Label: "µs", Log: true},
			Heat: &view.Heat{Colour: 7, At: []float64{1, 2},
				From:   []float64{64, 64 * view.HalfOctave},
				Counts: [][]int64{{1000, 0}, {1, 30}}}},
		"dots.svg": {X: view.Axis{Label: "tier"}, Y: view.Axis{Label: "ms", Log: true},
			Lines: []view.Line{{Name: "p", Apart: true, X: x, Y: []float64{0.001, 10, 1000, 0}}}},
	} {
		golden.Check(t, name, strings.ReplaceAll(svg(c), ">", ">\n"))
	}
}

// Odd ranges give a drawing without odd numbers.
func TestDegenerateRanges(t *testing.T) {
	for _, y := range [][]float64{{0, 0}, {5, 5}, {1e-300, 1e300}, {-1, -5}, {1e18, 1e18 + 4096}} {
		for _, log := range []bool{false, true} {
			for _, zero := range []bool{false, true} {
				got := svg(view.Chart{X: view.Axis{Zero: zero}, Y: view.Axis{Log: log, Zero: zero},
					Lines: []view.Line{{X: []float64{1, 1}, Y: y}}})
				assert.NotContains(t, got, "NaN")
				assert.NotContains(t, got, "Inf")
				assert.Less(t, len(got), 200_000)
			}
		}
	}
}

func TestTicks(t *testing.T) {
	labels := func(ticks []view.Tick) (out []string) {
		for _, x := range ticks {
			out = append(out, x.Label)
		}
		return out
	}
	assert.Equal(t, []string{"0", "0.5", "1.0", "1.5"},
		labels(ticks(scale{lo: 0, hi: 1.7, from: 0, to: 100}, 4)))
	assert.Equal(t, []string{"0.1", "1", "10", "100"},
		labels(ticks(scale{lo: -1, hi: 2, axis: view.Axis{Log: true}}, 4)))
	assert.Equal(t, []string{"10", "20", "30", "50"},
		labels(ticks(scale{lo: 1, hi: 1.8, axis: view.Axis{Log: true}}, 4)))
}
