package compute

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestWhatComputingCosts(t *testing.T) {
	c := Cost{PerToken: 1e-3, PerSquare: 1e-6}
	assert.Equal(t, 3*time.Second, c.Span(0, 1000)-c.Span(0, 0)+time.Second)
	assert.Equal(t, 2*time.Second, c.Span(0, 1000))
	assert.Equal(t, 4*time.Second, c.Span(1000, 2000), "1 s, and 2000² - 1000² µs")
	assert.Equal(t, c.Span(0, 2000), c.Span(0, 700)+c.Span(700, 2000), "pieces add up")
	assert.Zero(t, c.Span(5, 5))
	assert.Zero(t, Cost{}.Span(0, 1e9))
	assert.Positive(t, Cost{PerToken: 1e6, PerSquare: 1e6}.Span(0, 1<<30), "no overflow")
}

func TestCostTexts(t *testing.T) {
	for text, want := range map[string]Cost{"": {}, "0": {}, "22200": {PerToken: 1. / 22200},
		"1e4": {PerToken: 1e-4}, "0.5": {PerToken: 2},
		"a=4.5e-05,b=1e-10": {PerToken: 4.5e-5, PerSquare: 1e-10},
		"b=1e-9":            {PerSquare: 1e-9}, "a=0.001": {PerToken: 1e-3}} {
		c, err := ParseCost(text)
		require.NoError(t, err, text)
		assert.Equal(t, want, c, text)
		again, err := ParseCost(c.String())
		require.NoError(t, err, c.String())
		assert.Equal(t, c, again, c.String())
	}
	assert.Equal(t, "22200", Cost{PerToken: 1. / 22200}.String())
	assert.Equal(t, "a=4.5e-05,b=1e-10", Cost{4.5e-5, 1e-10}.String())
	for _, text := range []string{"-1", "NaN", "Inf", "fast", "a=", "a=-1", "a=1,a=1", "c=1", "a=0",
		"a=1 b=1", "a=NaN", "b=Inf", "22200tok/s"} {
		c, err := ParseCost(text)
		assert.ErrorContains(t, err, "a rate in tokens/s", text)
		assert.Zero(t, c, text)
	}
}

func TestPublishedRates(t *testing.T) {
	for _, r := range Published() {
		got, err := On(r.Model, r.GPU)
		require.NoError(t, err)
		assert.Equal(t, r, got, "each model and GPU once")
		assert.NotEmpty(t, r.Source)
		assert.NotEmpty(t, r.What)
		perSecond := 8192 / r.Cost.Seconds(8192)
		assert.Greater(t, perSecond, 1e3, r.Model)
		assert.Less(t, perSecond, 1e5, r.Model)
	}
	h20, err := On("qwen3-coder-30b-a3b", "H20")
	require.NoError(t, err)
	assert.InDelta(t, 0.078, h20.Cost.Seconds(1024), 1e-9)
	assert.InDelta(t, 15.2, h20.Cost.Seconds(65536), 1e-9)
	assert.Positive(t, h20.Cost.PerToken)
	_, err = On("llama3.1-70b-instruct", "h100")
	assert.ErrorContains(t, err, "one of 2xh100, 4xh100, 32xgh200, for which there is")
	_, err = On("tiny-1b", "h100")
	assert.ErrorContains(t, err, "used with -model llama3.1-8b or llama3.1-70b-instruct or deepseek-v3")
	assert.ErrorContains(t, err, ", because tiny-1b has no published rate here; -prefill-rate takes")
}

// The break-even lengths of lines and parabolas, computed by hand.
func TestBreakEven(t *testing.T) {
	affine := func(latency, perToken float64, at ...float64) (l Loading) {
		for _, n := range at {
			l = append(l, Point{n, latency + perToken*n})
		}
		return l
	}
	for _, c := range []struct {
		name string
		load Loading
		cost Cost
		want BreakEven
	}{
		{"a latency against a rate: 10 ms ÷ (1 ms - 0.5 ms)", affine(0.01, 0.5e-3, 5, 1000),
			Cost{PerToken: 1e-3}, BreakEven{Tokens: 21}},
		{"attention: 1 ms = 10 µs·n", affine(0, 1e-3, 10, 1000), Cost{PerSquare: 1e-5},
			BreakEven{Tokens: 101}},
		{"both: 0.9 ms = 10 µs·n", affine(0, 1e-3, 10, 1000),
			Cost{PerToken: 1e-4, PerSquare: 1e-5}, BreakEven{Tokens: 91}},
		{"loading is always faster", affine(0, 1e-4, 10, 1000), Cost{PerToken: 1e-3},
			BreakEven{Tokens: 1, Extrapolated: true}},
		{"from the first token measured", affine(0, 1e-4, 1, 1000), Cost{PerToken: 1e-3},
			BreakEven{Tokens: 1}},
		{"never", affine(0.01, 1e-3, 10, 1000), Cost{PerToken: 1e-3}, BreakEven{}},
		{"what is loaded for nothing at first", Loading{{10, 1e-9}, {1000, 1}},
			Cost{PerToken: 5e-4}, BreakEven{Tokens: 1, Until: 20, Extrapolated: true}},
		{"beyond what was measured", affine(0, 1e-3, 10, 50), Cost{PerSquare: 1e-5},
			BreakEven{Tokens: 101, Extrapolated: true}},
		{"below what was measured", affine(0.01, 0.5e-3, 100, 1000), Cost{PerToken: 1e-3},
			BreakEven{Tokens: 21, Extrapolated: true}},
		{"one length", Loading{{100, 0.05}}, Cost{PerToken: 1e-3},
			BreakEven{Tokens: 1, Extrapolated: true}},
		{"no time at all", Loading{{100, 0}}, Cost{PerToken: 1e-3},
			BreakEven{Tokens: 1, Extrapolated: true}},
		{"nothing measured", nil, Cost{PerToken: 1e-3}, BreakEven{}},
	} {
		assert.Equal(t, c.want, c.load.BreakEven(c.cost, 10_000), c.name)
	}
	assert.Zero(t, affine(0, 1e-3, 10, 50).BreakEven(Cost{PerSquare: 1e-5}, 100).Tokens,
		"not up to the longest")
}

// The recurrence, computed by hand: a layer that is loaded early waits for the computation of the layer
// before, the computation waits for a late layer, and layers loaded together are computed together.
func TestLayersAreComputedAsTheyCome(t *testing.T) {
	at := func(s ...int) (list []time.Duration) {
		for _, x := range s {
			list = append(list, time.Duration(x))
		}
		return list
	}
	for _, c := range []struct {
		name         string
		from, length int
		came         []time.Duration
		want         int
	}{
		{"all at once", 0, 40, at(100, 100, 100, 100), 140},
		{"computing is faster than loading: the last layer after the last one came",
			0, 40, at(100, 200, 300, 400), 410},
		{"loading is faster: the first one, and then all of computing",
			0, 400, at(10, 20, 30, 40), 410},
		{"a late one in the middle: 10+10, 20+10, 90+10, 100+10", 0, 40, at(10, 11, 90, 91), 110},
		{"the GPU is busy until 50", 50, 40, at(10, 20, 30, 40), 90},
		{"the GPU is busy until all have come", 500, 40, at(10, 20, 30, 40), 540},
		{"busy in the middle: 25+10, 35+10, 45+10, 55+10", 25, 40, at(10, 20, 30, 40), 65},
		{"what cannot be divided", 0, 11, at(0, 0, 0), 11},
		{"what cannot be divided is the last layer's: 100 + 5", 0, 11, at(0, 0, 100), 105},
		{"one layer", 3, 11, at(7), 18},
	} {
		assert.EqualValues(t, c.want, pipelined(time.Duration(c.from), time.Duration(c.length),
			c.came), c.name)
	}
}

// Prompts are computed one after the other, in the order of loading; layers that were loaded earlier are
// computed in unreserved time.
func TestServer(t *testing.T) {
	var s Server
	reserve := func(now, length time.Duration, came ...time.Duration) [2]time.Duration {
		wait, done := s.Reserve(now, length, length+1, came)
		return [2]time.Duration{wait, done}
	}
	assert.Zero(t, reserve(100, 0, 50, 100), "nothing to compute")
	assert.Equal(t, [2]time.Duration{0, 0}, reserve(100, 40), "until 140")
	assert.Equal(t, [2]time.Duration{30, 0}, reserve(110, 20), "until 160")
	assert.Equal(t, [2]time.Duration{10, 0}, reserve(150, 10, 120, 150), "until 170: no gap is left")
	assert.Equal(t, [2]time.Duration{0, 20}, reserve(300, 40, 200, 300), "200…220, 300…320")
	assert.Equal(t, [2]time.Duration{10, 0}, reserve(310, 5, 210, 310),
		"what was idle between 220 and 300 is over, and 320 is promised")
	early := s.Work(320)
	assert.Equal(t, Work{6, 40 + 20 + 10 + 40, 40 + 20 + 10 + 40 + 6}, early, "each found a little")
	assert.Equal(t, Work{6, 115, 121}, s.Work(1000))
	s.Reserve(1000, 0, 0, nil) // without a prompt
	assert.Equal(t, Work{0, 5, 5}, s.Work(1000).Since(early))
}
