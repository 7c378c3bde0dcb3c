package view

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench/result"
	"kvbench/tools/load"
	"kvbench/tools/stats"
)

func TestNothingToDraw(t *testing.T) {
	for _, c := range []Chart{{}, {Lines: []Line{{}}},
		{Lines: []Line{{X: []float64{1}, Y: []float64{math.NaN()}}}},
		{Y: Axis{Log: true}, Lines: []Line{{X: []float64{1, 2}, Y: []float64{0, -1}}}}} {
		assert.Empty(t, shown(false, c))
	}
}

// Loading and computing, from where loading begins to pay: 10 ms and 20 µs a token against 100 µs a
// token are equal at 125 tokens.
func TestLoadingIsDrawnWithComputing(t *testing.T) {
	r := &result.Result{FirstToken: &result.FirstToken{
		Prefill: result.PrefillCost{PerToken: 100e-6},
		Loading: []result.LoadingTime{{Tokens: 1000, P50NS: new(30e6)},
			{Tokens: 4000, P50NS: new(90e6), P95NS: new(200e6)}},
		BreakEven: result.BreakEvens{P50: &result.BreakEven{Answer: result.LoadFrom,
			Tokens: new(int64(125))}}}}
	lines := loadingLines(r)
	require.Len(t, lines, 3)
	assert.Equal(t, Values{1000, 4000}, lines[0].X)
	assert.InDeltaSlice(t, []float64{30, 90}, lines[0].Y, 1e-9)
	assert.True(t, math.IsNaN(lines[1].Y[0]), "too few loads of the shorter ones")
	assert.InDeltaSlice(t, []float64{125, 250, 500, 1000, 2000, 4000}, lines[2].X, 0)
	assert.InDelta(t, 12.5, lines[2].Y[0], 1e-9)
	assert.InDelta(t, 400, lines[2].Y[5], 1e-9)
	r.FirstToken = nil // misses were free
	assert.Empty(t, loadingLines(r))
}

func TestCurvesOfAKnee(t *testing.T) {
	lines := func(points ...result.KneePoint) []Line {
		r := result.Result{PlainIO: &result.PlainIO{Knee: &result.Knee{Points: points}}}
		return kneeLines(func(p result.KneePoint) float64 { return p.Rate })(
			subject{median: &load.Record{Result: &r}})
	}
	assert.Equal(t, []Line{{Name: "4 KiB", Dots: true, X: Values{1, 4}, Y: Values{1024, 4096}},
		{Name: "16 KiB", Dots: true, X: Values{1, 2}, Y: Values{3, 5}}},
		lines(result.KneePoint{RequestBytes: 4096, InFlight: 1, Rate: 1024},
			result.KneePoint{RequestBytes: 16384, InFlight: 1, Rate: 3},
			result.KneePoint{RequestBytes: 4096, InFlight: 4, Rate: 4096},
			result.KneePoint{RequestBytes: 16384, InFlight: 2, Rate: 5}))
	assert.Len(t, lines(result.KneePoint{RequestBytes: 3000}, result.KneePoint{RequestBytes: -1},
		result.KneePoint{}), 3, "of a file that was edited")
}

// Of many values six are listed; given parameters are listed completely, because each may matter.
func TestEveryGivenParameterIsShown(t *testing.T) {
	var f Facts
	for i := range 9 {
		f.add(given, fmt.Sprint("p=", i))
		f.add("seed", fmt.Sprint(i))
	}
	assert.Equal(t, 8, strings.Count(f[0].Value(), ", "))
	assert.Contains(t, f[1].Value(), "5, and 3 more")
}

// Each client of a trial may be on a machine of its own: the page lists all of them.
func TestTheMachinesOfClients(t *testing.T) {
	client := func(host string) *load.Record {
		return &load.Record{Result: &result.Result{Environment: result.Environment{Hostname: host,
			Cores: 8, CPUModel: "EPYC"}, IO: result.IO{CacheDir: "/mnt/kv"}}}
	}
	shown := func(rec *load.Record) map[string]string {
		values := map[string]string{}
		var facts Facts
		facts.describe(rec)
		for _, f := range facts {
			values[f.Key] = f.Value()
		}
		return values
	}
	together := client("")
	together.Ranks = []*load.Record{client("node0"), client("node1")}
	of := shown(together)
	assert.Equal(t, []string{"node0, node1", "EPYC, 8 cores", "/mnt/kv"},
		[]string{of["host"], of["CPU"], of["cache directory"]})
	merged := client("")
	merged.Result.Clients = &result.Clients{Hosts: []result.Host{{Name: "a"}, {Name: "b"}}}
	assert.Equal(t, "a, b", shown(merged)["host"])
}

// Medians of runs next to each other are in one unit: 995 MiB/s looks like more than 1.01 GiB/s.
func TestMediansOfRunsHaveOneUnit(t *testing.T) {
	var cells []stats.Cell
	for _, v := range []float64{995 << 20, 1034 << 20} {
		c := stats.Cell{Side: stats.Side{Values: []float64{v}}}
		c.Summary.Center, c.Summary.Lo, c.Summary.Hi = v, math.Inf(-1), math.Inf(1)
		cells = append(cells, c)
	}
	assert.Equal(t, "0.972 GiB/s", Median(cells[0], "read-B/s", cells).Text)
	assert.Equal(t, "1.01 GiB/s", Median(cells[1], "read-B/s", cells).Text)
	assert.Equal(t, "995 MiB/s", Median(cells[0], "read-B/s", cells[:1]).Text)
	assert.Equal(t, Median(cells[0], "x", nil).Text, Median(cells[0], "x", cells).Text)
}

func TestTheLeastLoadThatIsEnough(t *testing.T) {
	for _, c := range []struct {
		y    []float64
		want int
		ok   bool
	}{{[]float64{1, 2, 4, 8}, 3, false}, {[]float64{8, 8, 8}, 0, false},
		{[]float64{1, 7, 10, 10}, 2, true}, {[]float64{1, 10}, 0, false},
		{[]float64{1, 10, 5}, 1, true}} {
		k, ok := leastEnough(c.y)
		assert.Equal(t, c.ok, ok, c.y)
		if ok {
			assert.Equal(t, c.want, k)
		}
	}
}

// A timeline of a hundred intervals is drawn with a point for each four of them, and the band of their values.
func TestTimelinesAreSmooth(t *testing.T) {
	values := make([]float64, 100)
	for i := range values {
		values[i] = float64(i)
	}
	l := smooth(series{name: "read", values: values, step: true}, 50e6)
	assert.Len(t, l.X, 25)
	assert.Equal(t, []float64{0.2, 5.5, 4, 7}, []float64{l.X[1], l.Y[1], l.Low[1], l.High[1]})
	assert.Equal(t, "a point is the mean of 200 ms, the band its least and most 50 ms", l.point)
	l = smooth(series{values: values[:mostSmooth]}, 1e9)
	assert.Len(t, l.X, mostSmooth)
	assert.Empty(t, l.Low)
	assert.Equal(t, "a point is 1 s", l.point)
}

// Two hosts, each with a drive of the same name, are two drives to precondition: 4 GB on 2 × 2 GB is 1 × the capacity.
func TestDevicesOfTwoHostsHaveOneName(t *testing.T) {
	for hosts, want := range map[int]string{1: "2× the capacity", 2: "1× the capacity"} {
		r := &result.Result{DeviceCounters: result.DeviceCounters{AppWriteBytes: 4e9},
			Environment: result.Environment{Device: &result.Device{Name: "nvme0n1", SizeBytes: new(int64(2e9))}},
			Clients:     &result.Clients{Hosts: make([]result.Host, hosts)}}
		table := &stats.Table{Labels: []string{"run"},
			Benchmarks: []*stats.Benchmark{{Trials: [][]*load.Record{{{Result: r}}}}}}
		assert.Contains(t, preparation(table, 0), want)
	}
}
