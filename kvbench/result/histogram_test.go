package result

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench/units"
)

func TestHistogramIsWithinATenthOfAPercent(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	h := NewHistogram(units.Nanoseconds)
	all := make([]int64, 100000)
	for i := range all {
		all[i] = int64(1e3 * (1 + rng.ExpFloat64()*1e5))
		h.Record(all[i])
	}
	slices.Sort(all)
	for _, p := range []float64{0.05, 0.5, 0.95, 0.99, 0.999, 0.9999} {
		got, ok := h.Percentile(p)
		require.True(t, ok)
		want := all[int(p*float64(len(all))+0.5)-1]
		assert.InEpsilon(t, want, got, 0.001, "p%g", p*100)
	}
	mean, _ := h.Mean()
	var sum float64
	for _, v := range all {
		sum += float64(v)
	}
	assert.InEpsilon(t, sum/float64(len(all)), mean, 1e-12, "the mean is exact")
	at := all[len(all)/3]
	assert.InEpsilon(t, len(all)/3, h.AtMost(at), 0.01)
	assert.EqualValues(t, len(all), h.AtMost(all[len(all)-1]))
}

func TestHistogramEdges(t *testing.T) {
	h := NewHistogram(units.Nanoseconds)
	_, ok := h.Percentile(0.5)
	assert.False(t, ok)
	assert.Zero(t, (*Histogram)(nil).Count())
	h.Record(-5)
	h.Record(0)
	h.Record(30 * 3600 * 1e9) // beyond a day
	assert.EqualValues(t, 3, h.Count())
	assert.EqualValues(t, 1, h.n.OutOfRange)
	v, _ := h.Percentile(1)
	assert.InEpsilon(t, int64(24*3600*1e9), v, 0.001, "counted as the end of the range")
	d := NewDistribution(units.Nanoseconds, h)
	assert.EqualValues(t, 0, *d.Min)
	assert.EqualValues(t, int64(30*3600*1e9), *d.Max, "minimum and maximum are exact")
}

// TestInterpolatedPercentiles: the values are those of numpy.percentile of the same samples.
func TestInterpolatedPercentiles(t *testing.T) {
	for _, c := range []struct {
		samples []int64 // ms
		p       map[float64]float64
	}{
		{[]int64{40}, map[float64]float64{0.5: 40, 0.9999: 40}},
		{[]int64{40, 10, 20}, map[float64]float64{0: 10, 0.5: 20, 0.95: 38, 0.99: 39.6, 1: 40}},
		{[]int64{10, 100}, map[float64]float64{0.5: 55, 0.95: 95.5}},
		{[]int64{1, 2, 3, 4, 5, 6, 7, 8, 9, 1000}, map[float64]float64{0.5: 5.5, 0.9: 108.1, 0.95: 554.05}},
	} {
		h := NewHistogram(units.Nanoseconds)
		for _, ms := range c.samples {
			h.Record(ms * 1e6)
		}
		for p, want := range c.p {
			assert.InEpsilon(t, want, *h.InterpolatedMS(p), 0.001, "p%g of %v", p*100, c.samples)
		}
	}
	assert.Nil(t, NewHistogram(units.Nanoseconds).InterpolatedMS(0.5))
}

func TestPercentilesNeedSamples(t *testing.T) {
	for p, need := range map[float64]int64{0.5: 20, 0.05: 200, 0.95: 200, 0.99: 1000, 0.999: 10000,
		0.9999: 100000} {
		assert.True(t, Supported(p, need), p)
		assert.False(t, Supported(p, need-1), p)
	}
	h := NewHistogram(units.Nanoseconds)
	for i := range 199 {
		h.Record(int64(i))
	}
	d := NewDistribution(units.Nanoseconds, h)
	assert.NotNil(t, d.P50)
	assert.Nil(t, d.P95)
	h.Record(1)
	assert.NotNil(t, NewDistribution(units.Nanoseconds, h).P95)
	assert.NotNil(t, latencyMS(h)["p9999"], "compatible keys keep their value")
}

func TestHistogramEncoding(t *testing.T) {
	a, b, both := NewHistogram(units.Nanoseconds), NewHistogram(units.Nanoseconds),
		NewHistogram(units.Nanoseconds)
	for i := range int64(5000) {
		a.Record(i * 977)
		b.Record(i * i * 31)
		both.Record(i * 977)
		both.Record(i * i * 31)
	}
	decoded := func(h *Histogram) *Histogram {
		d := h.Encode()
		assert.Less(t, len(d.Data), 12000, "compact")
		out, err := d.Decode()
		require.NoError(t, err)
		return out
	}
	m := decoded(a)
	m.Merge(decoded(b))
	m.Merge(nil)
	assert.Equal(t, NewDistribution(units.Nanoseconds, both), NewDistribution(units.Nanoseconds, m))

	d := a.Encode()
	d.Count++
	_, err := d.Decode()
	require.ErrorContains(t, err, "announced")
	d.Encoding = "v9"
	_, err = d.Decode()
	require.ErrorContains(t, err, "v9")
	d.Encoding, d.Data = histEncoding, "????"
	_, err = d.Decode()
	require.Error(t, err)
}
