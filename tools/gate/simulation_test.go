package gate

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/perf/benchfmt"

	"kvbench/tools/load"
	"kvbench/tools/stats"
)

// seed is printed with every simulation; GATE_SEED repeats one.
func seed(t *testing.T) *rand.Rand {
	t.Helper()
	n := uint64(20260908)
	if text := os.Getenv("GATE_SEED"); text != "" {
		var err error
		n, err = strconv.ParseUint(text, 10, 64)
		require.NoError(t, err)
	}
	t.Logf("GATE_SEED=%d", n)
	return rand.New(rand.NewPCG(n, 4))
}

// normal draws n samples of a mean with a coefficient of variation.
func normal(r *rand.Rand, n int, mean, cv float64) []float64 {
	v := make([]float64, n)
	for i := range v {
		v[i] = mean * max(0.01, 1+cv*r.NormFloat64())
	}
	return v
}

// pair is a comparison of benchmarks that each have one metric.
func pair(benches int, old, new func() []float64) *Report {
	var c stats.Collection
	units := benchfmt.UnitMetadataMap{}
	key := benchfmt.UnitMetadataKey{Unit: "read-B/s", Key: "better"}
	units[key] = &benchfmt.UnitMetadata{UnitMetadataKey: key, Value: "higher"}
	for i := range benches {
		add := func(side string, values []float64) {
			for _, v := range values {
				c.Add(side, (&load.Record{Name: fmt.Sprintf("B%d", i),
					Values: []benchfmt.Value{{Value: v, Unit: "read-B/s"}}}))
			}
		}
		add("old", old())
		add("new", new())
	}
	r, err := Judge(c.Table(units), Options{Alpha: 0.05, Limits: Limits{Default: 0.05}})
	if err != nil {
		panic(err)
	}
	return r
}

func TestFalseAlarmsOfOneMetricStayWithinTheLevel(t *testing.T) {
	const pairs, level = 2000, 0.025 // one of the two sides of 5 %
	r := seed(t)
	alarms := 0
	for range pairs {
		draw := func() []float64 { return normal(r, 6, 1e9, 0.20) }
		if pair(1, draw, draw).Failed() {
			alarms++
		}
	}
	bound := level + 1.96*math.Sqrt(level*(1-level)/pairs)
	rate := float64(alarms) / pairs
	t.Logf("%d alarms in %d pairs without a change (n = 6, CV 20 %%): %.2f %%, at most %.2f %%",
		alarms, pairs, 100*rate, 100*bound)
	assert.LessOrEqual(t, rate, bound)
	assert.Positive(t, alarms, "a gate that never alarms tests nothing")
}

func TestFalseAlarmsOfAFamilyStayWithinTheLevel(t *testing.T) {
	const runs, benches = 300, 19
	r := seed(t)
	red := 0
	for range runs {
		draw := func() []float64 { return normal(r, 6, 1e9, 0.20) }
		if pair(benches, draw, draw).Failed() {
			red++
		}
	}
	t.Logf("%d of %d runs of %d benchmarks without a change are red: %.1f %%", red, runs, benches,
		100*float64(red)/runs)
	assert.LessOrEqual(t, float64(red)/runs, 0.05)
}

func TestTrueLossesAreFound(t *testing.T) {
	const pairs = 2000
	r := seed(t)
	found := 0
	for range pairs {
		report := pair(1, func() []float64 { return normal(r, 6, 1e9, 0.03) },
			func() []float64 { return normal(r, 6, 0.9e9, 0.03) })
		if report.Failed() {
			found++
		}
	}
	t.Logf("%d of %d losses of 10 %% found (n = 6, CV 3 %%, threshold 5 %%): %.2f %%", found, pairs,
		100*float64(found)/pairs)
	assert.GreaterOrEqual(t, float64(found)/pairs, 0.99)
}

func TestLossFollowsTheDirection(t *testing.T) {
	loss := func(better int, ratio float64) float64 {
		cells := []stats.Cell{{}, {Change: &stats.Change{Ratio: ratio}}}
		return newRow("B", &stats.Metric{Better: better, Cells: cells}, 0).Loss
	}
	assert.InDelta(t, 0.1, loss(1, -0.1), 1e-12)
	assert.InDelta(t, -0.1, loss(1, 0.1), 1e-12)
	assert.InDelta(t, 0.1, loss(-1, 0.1), 1e-12)
	assert.True(t, math.IsInf(loss(-1, math.Inf(1)), 1), "from none to some of what should be little")
	assert.True(t, math.IsInf(loss(1, math.Inf(1)), -1))
	assert.True(t, math.IsNaN(loss(0, 0.1)), "no direction, no loss")
}
