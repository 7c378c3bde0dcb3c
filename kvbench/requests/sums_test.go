package requests

import (
	"context"
	"fmt"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench"
	"kvbench/kvbench/result"
	"kvbench/tiers"
	"kvbench/tiers/cache"
	"kvbench/tiers/clock"
	"kvbench/tiers/faults"
	"kvbench/tiers/sim"
	"kvbench/tiers/tiertest"
	"kvbench/workloads"
	"kvbench/workloads/compute"
	"kvbench/workloads/model"
	"kvbench/workloads/users"
)

// A drive that these loads keep busy, in virtual time.
var sumsDevice = &tiers.DeviceModel{Read: 3 << 30, Write: 1 << 30, Parallelism: 32,
	ReadLatency: 80 * time.Microsecond, WriteLatency: 20 * time.Microsecond}

// multiTurn is a closed loop of agents whose history does not fit.
func multiTurn(t *testing.T, window time.Duration) runConfig {
	t.Helper()
	tiny, err := model.Find("tiny-1b", nil)
	require.NoError(t, err)
	cfg := usersConfig(tiny, 8, window)
	p := users.Default()
	cfg.Source = func() (workloads.Source, error) {
		return users.New(users.Config{Profile: p, Users: users.Population(p, 42, 8, false),
			Seed: 42, MultiTurn: true, ClosedLoop: true}), nil
	}
	return cfg
}

// sumsLoads are loads of all kinds, each with its special features.
func sumsLoads(t *testing.T) map[string]runConfig {
	t.Helper()
	option1 := optionOne(t, 5*time.Second)
	option1.Storage.StorageBytes, option1.Warmup = 16<<30, 3*time.Second
	option2 := optionOne(t, 5*time.Second)
	option2.Storage.CPUBytes, option2.Storage.StorageBytes = 4<<30, 16<<30
	option2.TokenTime = time.Millisecond
	agents := multiTurn(t, 60*time.Second)
	agents.Storage.StorageBytes = 4 << 30
	computed := agents
	computed.Cost = compute.Cost{PerToken: 1e-4} // seconds
	blocks := blockConfig(smallTrace, 4)
	blocks.Storage.CPUBytes, blocks.Storage.StorageBytes = 30*512*128, 50*512*128
	rag := ragConfig(10, 3, 300)
	rag.Storage.StorageBytes = 1 << 30
	rag.Window, rag.EndedBy = 0, result.EndedByMaxRequests
	counted := optionOne(t, 0)
	counted.Storage.StorageBytes, counted.Limit = 16<<30, 25
	return map[string]runConfig{"option 1": option1, "option 2": option2, "agents": agents,
		"agents whose misses cost": computed, "blocks": blocks, "documents": rag, "a count": counted}
}

// checkSums checks that the parts of each sum add up, to the byte.
func checkSums(t *testing.T, r *result.Result) {
	t.Helper()
	var first, again result.ReadCount
	for _, l := range r.Tiers {
		for op, n := range map[string]result.TierTraffic{"read": l.Read, "write": l.Write} {
			assert.Equal(t, n.Bytes,
				n.EntryBytes-n.EarlierBytes+n.DemotionBytes+n.CutBytes+n.LostBytes-
					n.MemoryBytes,
				"%s %s: %+v", l.Level, op, n)
			assert.GreaterOrEqual(t, n.EarlierBytes, int64(0))
		}
		assert.Equal(t, l.Read.EntryBytes, l.FirstReads.Bytes+l.ReReads.Bytes, l.Level)
		assert.Equal(t, l.Read.Operations, l.FirstReads.Operations+l.ReReads.Operations, l.Level)
		if l.CapacityBytes != nil {
			assert.LessOrEqual(t, l.UsedBytes-l.LeavingBytes+l.ClaimedBytes, *l.CapacityBytes)
		}
		first.Add(l.FirstReads)
		again.Add(l.ReReads)
	}
	assert.Equal(t, r.FirstReads.ReadCount, first)
	assert.Equal(t, r.ReReads.ReadCount, again)

	// No nanosecond of a request is in two parts or in none; only what failed has a rest, where
	// planning takes no time.
	s, all := r.Requests.Time, r.Latency.Request
	rest := s.EndToEnd - s.Queue - s.Context - s.Prefill - s.Decode - s.Waits() - s.Data -
		s.GPUWait - s.Compute - s.Generation - s.Release
	assert.Equal(t, rest, s.Rest)
	assert.GreaterOrEqual(t, rest, int64(0))
	assert.Equal(t, r.Requests.StorageLatencyNS, s.Context+s.Prefill+s.Decode)
	if r.Requests.FailedOperations+r.Requests.RetriedOperations == 0 {
		assert.Zero(t, rest)
	}
	// Nor is it lost in the distributions.
	sum := 0.0
	for _, d := range []result.Distribution{all.Queue, all.Context, all.Prefill, all.Decode,
		all.Wait, all.Generation, all.Rest} {
		assert.Equal(t, r.Requests.Completed, d.Count)
		sum += *d.Mean
	}
	sum += float64(s.Data+s.GPUWait+s.Compute+s.Release) / float64(r.Requests.Completed)
	assert.InEpsilon(t, *all.EndToEnd.Mean, sum, 1e-9)
	assert.InEpsilon(t, float64(s.EndToEnd), *all.EndToEnd.Mean*float64(all.EndToEnd.Count), 1e-9)
}

// total adds up a count of both directions of all tiers.
func total(r *result.Result, of func(result.TierTraffic) int64) (n int64) {
	for _, l := range r.Tiers {
		n += of(l.Read) + of(l.Write)
	}
	return n
}

func TestWhatIsToldApartAddsUp(t *testing.T) {
	tiertest.OneThread(t)
	for name, cfg := range sumsLoads(t) {
		t.Run(name, func(t *testing.T) {
			r, err := simulateLoad(t.Context(), cfg, kvbench.SimConfig{Device: sumsDevice})
			require.NoError(t, err)
			checkSums(t, r)
			assert.Positive(t, r.FirstReads.Bytes)
			assert.Equal(t, cfg.Cost != compute.Cost{}, r.Requests.Time.Compute > 0)
			sum := func(of func(result.TierTraffic) int64) bool { return total(r, of) > 0 }
			// Bytes in flight at the end. Below a tier that takes no time there may be none.
			if cfg.Storage.CPUBytes == 0 {
				assert.Equal(t, cfg.EndedBy == "",
					sum(func(n result.TierTraffic) int64 { return n.CutBytes }))
			}
			assert.Equal(t, cfg.Warmup > 0,
				sum(func(n result.TierTraffic) int64 { return n.EarlierBytes }))
			assert.Equal(t, cfg.Storage.CPUBytes > 0,
				sum(func(n result.TierTraffic) int64 { return n.DemotionBytes }))
		})
	}
}

// pieces is a tier in which an entry's bytes are many requests.
type pieces struct{ tiers.Tier }

func (p pieces) Traits() tiers.Traits {
	t := p.Tier.Traits()
	t.Chunk = 16 << 20
	return t
}

// Failures and retries are counted separately, too. Faults need goroutines of their own, so the
// time is a bubble's.
func TestWhatFailedOrWasRepeatedAddsUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wall := clock.NewWall()
		cfg := optionOne(t, 60*time.Second)
		cfg.Users, cfg.Workers, cfg.Clock, cfg.Storage.Simulated = 20, 20, wall, true
		cfg.Storage.Workers = 20
		var levels []cache.Level
		for kind, capacity := range []int64{tiers.CPU: 4 << 30, tiers.Storage: 64 << 30} {
			if capacity == 0 {
				continue
			}
			link, err := sim.NewLink(2<<30, wall)
			require.NoError(t, err)
			levels = append(levels, cache.Level{Kind: tiers.Kind(kind), Capacity: capacity,
				Tier: pieces{faults.Wrap(link, func(_ context.Context, e faults.Event) error {
					switch {
					case e.Call != faults.Read || kind != int(tiers.Storage): // no demotion's
					case e.N == 500: // the request goes on without it
						return fmt.Errorf("on purpose: %w", syscall.EINVAL)
					case e.N%397 == 0: // is tried again, and seldom meets another one
						return fmt.Errorf("on purpose: %w", syscall.EAGAIN)
					}
					return nil
				})}})
		}
		cfg.Storage.Levels = levels
		r, err := runLoad(t.Context(), cfg)
		require.NoError(t, err)
		checkSums(t, r)
		assert.Positive(t, r.Requests.RetriedOperations)
		assert.Positive(t, r.Requests.FailedOperations)
		assert.Positive(t, total(r, func(n result.TierTraffic) int64 { return n.LostBytes }))
	})
}
