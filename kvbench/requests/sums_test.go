package requests

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench/result"
	"kvbench/tiers"
	"kvbench/tiers/cache"
	"kvbench/tiers/clock"
	"kvbench/tiers/faults"
	"kvbench/tiers/sim"
	"kvbench/tiers/transfer"
)

// A drive that these loads keep busy, in virtual time.
var sumsDevice = &tiers.DeviceModel{Read: 3 << 30, Write: 1 << 30, Parallelism: 32,
	ReadLatency: 80 * time.Microsecond, WriteLatency: 20 * time.Microsecond}

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
	mean, n := *all.EndToEnd.Mean, float64(all.EndToEnd.Count) // may be 0, in virtual time
	assert.InDelta(t, mean, sum, mean*1e-9)
	assert.InDelta(t, float64(s.EndToEnd), mean*n, mean*n*1e-9)
}

// pieces is a tier in which an entry's bytes are many requests.
type pieces struct{ tiers.Files }

func (p pieces) Traits() tiers.Traits {
	t := p.Files.Traits()
	t.Chunk = 16 << 20
	return t
}

// Failures and retries are counted separately, too. Faults need goroutines of their own, so the
// time is a bubble's.
func TestWhatFailedOrWasRepeatedAddsUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wall := clock.NewWall()
		cfg := optionOne(t, 20*time.Second)
		cfg.Workers, cfg.Clock, cfg.Storage.Simulated = 20, wall, true
		cfg.Storage.Workers, cfg.Warmup = 20, 5*time.Second
		var levels []cache.Level
		for kind, capacity := range []int64{tiers.CPU: 4 << 30, tiers.Storage: 64 << 30} {
			if capacity == 0 {
				continue
			}
			link := sim.NewLink(2<<30, wall)
			levels = append(levels, cache.Level{Kind: tiers.Kind(kind), Capacity: capacity,
				Tier: transfer.New(pieces{faults.Wrap(link, func(_ context.Context, e faults.Event) error {
					switch {
					case e.Call != faults.Read || kind != int(tiers.Storage): // no demotion's
					case e.N == 200: // the request goes on without it
						return fmt.Errorf("on purpose: %w", syscall.EINVAL)
					case e.N%97 == 0: // is tried again, and seldom meets another one
						return fmt.Errorf("on purpose: %w", syscall.EAGAIN)
					}
					return nil
				})}, nil)})
		}
		cfg.Storage.Levels = levels
		r, err := runLoad(t.Context(), cfg)
		require.NoError(t, err)
		checkSums(t, r)
		assert.Positive(t, r.Requests.RetriedOperations)
		assert.Positive(t, r.Requests.FailedOperations)
		assert.Positive(t, r.Tiers[1].Read.LostBytes)
		assert.Positive(t, r.Tiers[1].Read.EarlierBytes)
		assert.Contains(t, strings.Join(r.Warnings, "\n"), "after transient errors")
	})
}
