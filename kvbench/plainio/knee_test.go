package plainio

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
	"kvbench/tiers"
	"kvbench/tiers/buffer"
	"kvbench/tiers/clock"
	"kvbench/tiers/sim"
)

// kneeOn looks for the knee of a model in virtual time.
func kneeOn(t *testing.T, m tiers.DeviceModel, op tiers.Op, seed uint64) *result.Result {
	t.Helper()
	require.NoError(t, m.Validate())
	v := clock.NewVirtual()
	cfg := overLevels(onTier(sim.NewDevice(m, "a model", v), 1<<40), 1).lasting(time.Second)
	cfg.trialConfig.Clock, cfg.Storage.Simulated, cfg.Seed = v, true, seed
	res, err := runPlain(t.Context(), cfg, &Knee{Blocks: Blocks{Op: op, Footprint: 512 << 20}})
	require.NoError(t, err)
	require.Equal(t, result.StatusComplete, res.Status, res.Error)
	require.NotNil(t, res.PlainIO.Knee)
	return res
}

// grid is every pair with so many bytes in flight at most, each measured for a second, so often.
func (r *Knee) grid(ctx context.Context, flight int64, rounds int) (all []*pair, err error) {
	for size := int64(pageSize); size <= min(KneeSize, r.size); size *= kneeStep {
		for n := 1; n <= kneeMost && int64(n)*size <= flight; n *= 2 {
			all = append(all, &pair{size: size, n: n})
		}
	}
	for range rounds {
		for _, p := range all {
			if err := r.measure(ctx, p, time.Second); err != nil {
				return nil, err
			}
		}
	}
	return all, nil
}

// fastest is the fastest pair, and the least bytes in flight of those that are as fast.
func fastest(all []*pair) (best float64, least int64) {
	for _, p := range all {
		best = max(best, p.rate())
	}
	for _, p := range all {
		if p.rate() >= kneeWithin*best && (least == 0 || p.inFlight() < least) {
			least = p.inFlight()
		}
	}
	return best, least
}

// gridOf is the grid of a model in virtual time.
func gridOf(t *testing.T, m tiers.DeviceModel, op tiers.Op) (least int64, best float64) {
	t.Helper()
	v := clock.NewVirtual()
	cfg := overLevels(onTier(sim.NewDevice(m, "a model", v), 1<<40), 1)
	cfg.trialConfig.Clock, cfg.Storage.Simulated, cfg.Limit = v, true, 1
	_, err := runPlain(t.Context(), cfg, once(func(ctx context.Context, b *Bench) error {
		r := &Knee{Blocks: Blocks{Op: op, Footprint: 512 << 20}}
		require.NoError(t, r.lay(b, KneeSize))
		require.NoError(t, r.fill(ctx, r.Footprint, 0))
		pool, err := r.buffers(ctx, KneeFlight/KneeSize)
		require.NoError(t, err)
		r.pool = pool
		all, err := r.grid(ctx, 16<<20, 1)
		require.NoError(t, err)
		best, least = fastest(all)
		return nil
	}))
	require.NoError(t, err)
	return least, best
}

// The knee is that of the whole grid, however a run draws its places.
func TestTheKneeIsThatOfTheGrid(t *testing.T) {
	for name, c := range map[string]struct {
		model tiers.DeviceModel
		op    tiers.Op
		rate  float64
	}{
		"200 MiB/s": {tiers.DeviceModel{Read: 200 << 20, Write: 200 << 20, ReadLatency: 100_000,
			WriteLatency: 100_000, Parallelism: 128}, tiers.Read, 200 << 20},
		"1 GiB/s with 1,000 requests per second": {tiers.DeviceModel{Read: 1 << 30, Write: 1 << 30,
			ReadIOPS: 1000, WriteIOPS: 1000, ReadLatency: 80_000, WriteLatency: 20_000,
			Parallelism: 128}, tiers.Write, 1000 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			least, best := gridOf(t, c.model, c.op)
			for seed := range uint64(map[bool]int{true: 2, false: 10}[testing.Short() ||
				buffer.RaceEnabled]) {
				k := kneeOn(t, c.model, c.op, seed).PlainIO.Knee
				assert.InEpsilon(t, best, k.Best, 0.02)
				assert.GreaterOrEqual(t, k.Rate, 0.96*best)
				assert.Equal(t, least, k.Bytes(), "%d × %d", k.RequestBytes, k.InFlight)
				assert.Equal(t, result.KneePlateau, k.EndedBy)
				assert.Less(t, time.Duration(k.NS), 50*time.Second)
			}
		})
	}
}

// A pair that comes to the limit only now and then is not the knee, were it by the median.
func TestTheKneeHasRoomToSpare(t *testing.T) {
	measured := func(size int64, n int, rates ...float64) *pair {
		return &pair{size: size, n: n, rates: rates, lat: result.NewHistogram(units.Nanoseconds)}
	}
	all := []*pair{
		measured(4096, 1, 52),
		measured(4096, 4, 200, 199, 201, 180, 200, 171),
		measured(4096, 16, 199, 200, 150, 200, 201, 200),
		measured(4<<20, 4, 200, 200, 199, 202, 200, 200),
	}
	k := kneeOf(all, nearest(all), result.KneePlateau)
	assert.EqualValues(t, 4096, k.RequestBytes)
	assert.Equal(t, 16, k.InFlight)
	assert.EqualValues(t, 200, k.Rate)
	assert.Len(t, k.Points, 4)
	// Where all vary as much, the least in flight of them is the knee.
	all = []*pair{measured(4096, 4, 200, 150, 199, 180, 190, 160),
		measured(4<<20, 4, 150, 201, 160, 190, 180, 200)}
	assert.Equal(t, int64(4096), kneeOf(all, nearest(all), result.KneePlateau).RequestBytes)
}

// A search ends in its time also where each measurement takes long: a storage of 4 MiB/s has few
// requests to show in 200 ms.
func TestTheSearchForAKneeEndsInItsTime(t *testing.T) {
	v := clock.NewVirtual()
	m := tiers.DeviceModel{Read: 4 << 20, Write: 400 << 20, ReadLatency: 5_000_000,
		WriteLatency: 20_000, Parallelism: 128}
	cfg := overLevels(onTier(sim.NewDevice(m, "a model", v), 1<<40), 1).lasting(10 * time.Second)
	cfg.trialConfig.Clock, cfg.Storage.Simulated = v, true
	const limit = 20 * time.Second
	r := &Knee{Blocks: Blocks{Op: tiers.Read, Footprint: 512 << 20}, Limit: limit}
	res, err := runPlain(t.Context(), cfg, r)
	require.NoError(t, err)
	k := res.PlainIO.Knee
	longest := kneeRecheck + 500*time.Millisecond // of the measurement under way, with its requests
	assert.Greater(t, time.Duration(k.NS), limit/2)
	assert.Less(t, time.Duration(k.NS), limit+longest)
}
