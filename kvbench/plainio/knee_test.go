package plainio

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench/result"
	"kvbench/tiers"
	"kvbench/tiers/clock"
	"kvbench/tiers/tiertest"
)

// kneeOn measures the grid on a model in virtual time.
func kneeOn(ctx context.Context, t *testing.T, m tiers.DeviceModel, r *Knee,
	seed uint64) *result.Result {
	tiertest.OneThread(t)
	t.Helper()
	v := clock.NewVirtual()
	cfg := onModel(v, m, 1<<40).lasting(time.Second)
	cfg.Seed = seed
	r.Footprint = 512 << 20
	res, _ := runPlain(ctx, cfg, r)
	return res
}

// The knee is where the formula of a model has it, within the time also on slow storages and
// distant ones.
func TestTheKneeOfModels(t *testing.T) {
	const ms = time.Millisecond
	same := func(rate float64, latency time.Duration, parallel int) tiers.DeviceModel {
		return tiers.DeviceModel{Read: rate, Write: rate, ReadLatency: latency,
			WriteLatency: latency, Parallelism: parallel}
	}
	limited := func(m tiers.DeviceModel, requests float64) tiers.DeviceModel {
		m.ReadIOPS, m.WriteIOPS = requests, requests
		return m
	}
	for name, c := range map[string]struct {
		model       tiers.DeviceModel
		op          tiers.Op
		least, most int64 // bytes in flight
		rate        float64
		edge        bool
	}{
		// 8 of 4 KiB in 120 µs are 273 MB/s, 4 of them are 137 MB/s.
		"200 MiB/s": {same(200<<20, ms/10, 128), tiers.Read, 32 << 10, 32 << 10, 200 << 20, false},
		"1 GiB/s and 1,000 requests per second": {limited(same(1<<30, ms/20, 128), 1000),
			tiers.Write, 1 << 20, 4 << 20, 1000 << 20, false},
		"20 MiB/s": {same(20<<20, ms/2, 32), tiers.Read, 12 << 10, 32 << 10, 20 << 20, false},
		"5 MiB/s":  {same(5<<20, 2*ms, 32), tiers.Write, 12 << 10, 32 << 10, 5 << 20, false},
		"a disk": {limited(same(150<<20, 4*ms, 32), 120), tiers.Read, 4 << 20, 16 << 20, 150 << 20,
			false},
		"a network": {same(1<<30, 100*ms, 1024), tiers.Read, KneeFlight, KneeFlight, 640 << 20,
			true},
	} {
		t.Run(name, func(t *testing.T) {
			res := kneeOn(t.Context(), t, c.model, &Knee{Blocks: Blocks{Op: c.op}}, 1)
			require.Equal(t, result.StatusComplete, res.Status, res.Error)
			k := res.PlainIO.Knee
			require.True(t, k.Known())
			assert.True(t, k.Bytes() >= c.least && k.Bytes() <= c.most, "%d × %d", k.InFlight,
				k.RequestBytes)
			assert.InEpsilon(t, c.rate, k.Rate, 0.08)
			assert.GreaterOrEqual(t, k.Rate, kneeWithin*k.Best)
			assert.InEpsilon(t, c.rate, k.Best, 0.08)
			assert.Less(t, time.Duration(k.NS), kneeLimit)
			assert.Equal(t, k.InFlight, res.Workload.Workers, "the window measures the knee")
			assert.Equal(t, k.RequestBytes, res.PlainIO.BlockBytes)
			assert.EqualValues(t, 1, k.OrderSeed)
			for _, p := range k.Points {
				assert.Equal(t, kneeRounds, p.Rounds)
				assert.True(t, p.Min <= p.Rate && p.Rate <= p.Max && p.Min <= k.Best)
			}
		})
	}
}

// Where the time is up, or the run is interrupted, there is no knee, but the cells that were
// measured until then.
func TestAGridThatEndsEarlyHasNoKnee(t *testing.T) {
	tiertest.OneThread(t)
	run := func(rate float64, limit, stop time.Duration) (*result.Result, *result.Knee) {
		m := tiers.DeviceModel{Read: rate, Write: rate, ReadLatency: 1e5, WriteLatency: 1e5,
			Parallelism: 128}
		v := clock.NewVirtual()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		v.At(stop, cancel)
		res, _ := runPlain(ctx, onModel(v, m, 1<<40).lasting(time.Second),
			&Knee{Blocks: Blocks{Op: tiers.Read, Footprint: 512 << 20}, Limit: limit})
		require.NotNil(t, res.PlainIO.Knee, res.Error)
		return res, res.PlainIO.Knee
	}
	// The first file takes longer than the limit, so that one cell is measured once.
	res, k := run(5<<20, 4*time.Second, time.Hour)
	assert.Equal(t, result.StatusComplete, res.Status)
	assert.Equal(t, result.KneeTime, k.EndedBy)
	assert.Equal(t, []int{1, 1}, []int{len(k.Points), k.Points[0].Rounds})
	assert.Equal(t, 1, k.InFlight, "the window measures the best so far")

	res, k = run(200<<20, time.Minute, 10*time.Second)
	assert.NotEqual(t, result.StatusComplete, res.Status)
	assert.Equal(t, result.KneeInterrupted, k.EndedBy)
	assert.False(t, k.Known())
	assert.NotEmpty(t, k.Points)
	assert.Zero(t, k.InFlight)
}

// A tier too small for the largest requests is refused, with its capacity and the needed one.
func TestAKneeNeedsRoom(t *testing.T) {
	v := clock.NewVirtual()
	m := tiers.DeviceModel{Read: 1 << 30, Write: 1 << 30, Parallelism: 1}
	cfg := onModel(v, m, 6<<20).lasting(time.Second)
	cfg.Workers = 0
	res, err := runPlain(t.Context(), cfg, &Knee{Blocks: Blocks{Op: tiers.Read,
		Footprint: 3 << 20}})
	assert.Zero(t, res.Workload.Workers, "no number is known")
	text := res.Error
	if err != nil {
		text += err.Error()
	}
	assert.Contains(t, text, "requests of up to 4 MiB have 3 MiB of the tier to go to: give at "+
		"least that much by -ceiling-size-gb, or twice of it by -storage-capacity-gb")
}

// The first cases of verdict/testdata/first-cases.md, and how ties are broken.
func TestWhichCellIsTheKnee(t *testing.T) {
	type rates [3]float64
	for name, c := range map[string]struct {
		cells map[[2]int64]rates // by size in KiB and number
		knee  [2]int64
		best  float64
		equal [][2]int64
	}{
		"K1: one measurement that is far off": {map[[2]int64]rates{{1024, 1}: {5.69, 3.5, 3.4},
			{1024, 2}: {3.70, 3.72, 3.74}, {1024, 4}: {3.71, 3.72, 3.73}},
			[2]int64{1024, 2}, 3.71, [][2]int64{{1024, 1}, {1024, 4}}},
		"burst credit in two of three": {map[[2]int64]rates{{16, 2}: {199, 201, 224},
			{16, 16}: {200, 277, 316}, {1024, 1}: {206, 210, 218}},
			[2]int64{16, 2}, 206, [][2]int64{{16, 16}, {1024, 1}}},
		"K3: sizes that cannot be distinguished": {map[[2]int64]rates{{256, 1}: {1, 1, 1.1},
			{1024, 1}: {3.6, 3.7, 3.8}, {4096, 1}: {3.5, 3.75, 3.8}, {4096, 4}: {3.7, 3.8, 3.9}},
			[2]int64{1024, 1}, 3.7, [][2]int64{{4096, 1}, {4096, 4}}},
		"within 5 %": {map[[2]int64]rates{{4, 1}: {94, 94, 94}, {4, 2}: {95, 95, 95},
			{4, 4}: {100, 100, 100}}, [2]int64{4, 2}, 100, nil},
		"equally many bytes in flight: the fewest requests": {map[[2]int64]rates{
			{16, 4}: {99, 99, 99}, {64, 1}: {97, 97, 97}, {4, 16}: {100, 100, 100}},
			[2]int64{64, 1}, 100, nil},
	} {
		t.Run(name, func(t *testing.T) {
			cells := allCells(pageSize, 2)
			for _, cell := range cells {
				if r, some := c.cells[[2]int64{cell.size >> 10, int64(cell.n)}]; some {
					cell.rates = r[:]
				}
			}
			k := result.Knee{Points: points(cells)}
			require.True(t, choose(&k))
			assert.Equal(t, c.knee, [2]int64{k.RequestBytes >> 10, int64(k.InFlight)})
			assert.Equal(t, c.best, k.Best)
			var equal [][2]int64
			for _, p := range k.Equal() {
				equal = append(equal, [2]int64{p.RequestBytes >> 10, int64(p.InFlight)})
			}
			assert.Equal(t, c.equal, equal)
		})
	}
	assert.False(t, choose(&result.Knee{}))
}

// Each round has every cell once, in an order that follows from the seed; cells that are too slow
// on a slow storage are left out.
func TestTheOrderAndSizeOfTheGrid(t *testing.T) {
	const left, ms = 30 * time.Second, time.Millisecond
	fast := pace{kneeTime, ms, 1 << 30, 1e5}
	cells := newGrid(pageSize, fast, left)
	assert.Len(t, cells, 44)
	assert.Len(t, newGrid(16<<10, fast, left), 36, "where direct I/O takes no less")
	all := order(cells, 7)
	require.Len(t, all, kneeRounds*len(cells))
	assert.Equal(t, all, order(cells, 7))
	assert.NotEqual(t, all, order(cells, 8))
	rounds := slices.Collect(slices.Chunk(all, len(cells)))
	assert.NotEqual(t, rounds[0], rounds[1])
	for _, round := range rounds {
		assert.ElementsMatch(t, cells, round)
	}
	for name, c := range map[string]struct {
		pace   pace
		left   time.Duration
		cells  int
		n      int   // most requests in flight
		flight int64 // most bytes in flight
	}{
		"half of the time": {fast, 15 * time.Second, 23, 64, KneeFlight},
		"far":              {pace{kneeTime, 100 * ms, 1 << 30, 1e3}, left, 23, 64, KneeFlight},
		"few bytes":        {pace{kneeTime, ms, 5 << 20, 1e3}, left, 15, 64, 4 << 20},
		"few requests":     {pace{kneeTime, 8 * ms, 150 << 20, 120}, left, 19, 64, KneeFlight},
		"no time":          {fast, -time.Second, 1, 1, pageSize},
	} {
		t.Run(name, func(t *testing.T) {
			cells, n := newGrid(pageSize, c.pace, c.left), 0
			assert.Len(t, cells, c.cells)
			for _, c := range cells {
				n = max(n, c.n)
			}
			assert.Equal(t, c.n, n)
			assert.Equal(t, c.flight, cells[len(cells)-1].inFlight())
			assert.True(t, slices.IsSortedFunc(cells, smaller))
		})
	}
}
