package plainio

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench/result"
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
			all = append(all, newPair(size, n))
		}
	}
	for range rounds {
		for _, p := range all {
			_, err := r.measure(ctx, p.spender(), kneeSpend)
			rate, err2 := r.measure(ctx, p, time.Second)
			if err = errors.Join(err, err2); err != nil {
				return nil, err
			}
			p.rates = append(p.rates, rate)
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

// What is slow, or far, is searched within the time, too, and the knee is where it ought to be.
func TestTheKneeOfSlowStorages(t *testing.T) {
	const ms = time.Millisecond
	for name, c := range map[string]struct {
		model       tiers.DeviceModel
		least, most int64 // bytes in flight
		rate        float64
	}{
		"20 MiB/s": {tiers.DeviceModel{Read: 20 << 20, Write: 20 << 20, ReadLatency: ms / 2,
			WriteLatency: ms / 2, Parallelism: 32}, 16 << 10, 32 << 10, 20 << 20},
		"5 MiB/s": {tiers.DeviceModel{Read: 5 << 20, Write: 5 << 20, ReadLatency: 2 * ms,
			WriteLatency: 2 * ms, Parallelism: 32}, 16 << 10, 32 << 10, 5 << 20},
		"a disk": {tiers.DeviceModel{Read: 150 << 20, Write: 150 << 20, ReadIOPS: 120,
			WriteIOPS: 120, ReadLatency: 4 * ms, WriteLatency: 4 * ms, Parallelism: 32},
			4 << 20, 16 << 20, 150 << 20},
		"a network": {tiers.DeviceModel{Read: 1 << 30, Write: 1 << 30, ReadLatency: 100 * ms,
			WriteLatency: 100 * ms, Parallelism: 1024}, 96 << 20, 256 << 20, 1 << 30},
	} {
		t.Run(name, func(t *testing.T) {
			k := kneeOn(t, c.model, tiers.Read, 1).PlainIO.Knee
			assert.NotEqual(t, result.KneeTime, k.EndedBy)
			assert.GreaterOrEqual(t, k.Bytes(), c.least, "%d × %d", k.RequestBytes, k.InFlight)
			assert.LessOrEqual(t, k.Bytes(), c.most, "%d × %d", k.RequestBytes, k.InFlight)
			assert.InEpsilon(t, c.rate, k.Rate, 0.04)
			assert.Less(t, time.Duration(k.NS), kneeLimit)
			t.Logf("%d × %d of %d to %d, %d pairs, %s after %v", k.RequestBytes, k.InFlight,
				k.LeastBytes, k.MostBytes, len(k.Points), k.EndedBy, time.Duration(k.NS))
		})
	}
}

// A search ends in its time also where each measurement takes long: a storage of 4 MiB/s has few
// requests to show in 200 ms.
func TestTheSearchForAKneeEndsInItsTime(t *testing.T) {
	v := clock.NewVirtual()
	m := tiers.DeviceModel{Read: 4 << 20, Write: 400 << 20, ReadLatency: 5_000_000,
		WriteLatency: 20_000, Parallelism: 128}
	cfg := overLevels(onTier(sim.NewDevice(m, "a model", v), 1<<40), 1).lasting(10 * time.Second)
	cfg.trialConfig.Clock, cfg.Storage.Simulated = v, true
	const limit = 8 * time.Second // which is not enough
	r := &Knee{Blocks: Blocks{Op: tiers.Read, Footprint: 512 << 20}, Limit: limit}
	res, err := runPlain(t.Context(), cfg, r)
	require.NoError(t, err)
	k := res.PlainIO.Knee
	longest := kneeRecheck + 500*time.Millisecond // of the measurement under way, with its requests
	assert.Less(t, time.Duration(k.NS), limit+longest)
	assert.Equal(t, result.KneeTime, k.EndedBy)
}

// What has no room for the largest requests is refused, with what it has and what it needs.
func TestAKneeNeedsRoom(t *testing.T) {
	v := clock.NewVirtual()
	m := tiers.DeviceModel{Read: 1 << 30, Write: 1 << 30, Parallelism: 1}
	cfg := overLevels(onTier(sim.NewDevice(m, "a model", v), 20<<20), 1).lasting(time.Second)
	cfg.trialConfig.Clock, cfg.Storage.Simulated, cfg.Workers = v, true, 0
	res, err := runPlain(t.Context(), cfg, &Knee{Blocks: Blocks{Op: tiers.Read}})
	assert.Zero(t, res.Workload.Workers, "nobody has found how many")
	text := res.Error
	if err != nil {
		text += err.Error()
	}
	assert.Contains(t, text, "requests of up to 16 MiB have 10 MiB of the tier to go to: give at "+
		"least that much by -ceiling-size-gb, or twice of it by -storage-capacity-gb")
}
