package requests

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/tiers"
	"kvbench/tiers/cache"
	"kvbench/tiers/content"
	"kvbench/tiers/faults"
	"kvbench/tiers/tiertest"
	"kvbench/tiers/transfer"
	"kvbench/workloads/users"
)

// jitter yields the processor in the middle of some calls.
func jitter(_ context.Context, e faults.Event) error {
	for range rand.IntN(4) {
		runtime.Gosched()
	}
	return nil
}

// Many workers, hardly any room: every write waits for slots, space, readers and
// demotions of others, and all of them come through.
func TestNoScheduleHangsUnderOverload(t *testing.T) {
	noLeaks(t)
	const entry = 100 // tokens at most
	for _, slots := range []int{0, 1, 4} {
		t.Run(fmt.Sprint("slots=", slots), func(t *testing.T) {
			tier := faults.Wrap(tiertest.NewNull(), jitter)
			levels := append([]cache.Level{{Kind: tiers.CPU, Capacity: 2 * entry * unit,
				Tier: transfer.New(faults.Wrap(tiertest.NewNull(), jitter), nil)}},
				storage(tier, 3*entry*unit)...)
			p := users.Default()
			p.Templates = []users.Template{{Name: "small", Context: [2]int{entry / 10, entry},
				Generate: [2]int{1, 100}, Think: [2]float64{1, 2}}}
			p.SystemPromptShare = 0.5
			src := users.New(users.Config{
				Profile: p, Users: users.Population(p, uint64(slots), 40, false),
				Seed: uint64(slots), MultiTurn: true,
				PrefixCaching: true, Rate: 1e6, Overtaking: slots == 1, MaxRequests: 300,
			})
			cfg := testConfig(levels, src, 32).finite()
			cfg.Storage.MaxWriters, cfg.Overtaking = slots, slots == 1
			cfg.Planner.Batched = true
			r, gauges, err := usage(t.Context(), t, cfg)
			require.NoError(t, err)
			assert.EqualValues(t, 300, r.Requests.Completed)
			checkLoad(t, r)
			for i, g := range gauges {
				assert.Equal(t, g.Used, g.Bytes, "reservations are left in the %s tier", g.Level)
				assert.LessOrEqual(t, r.Tiers[i].PeakBytes, g.Capacity)
			}
			w, rd := tier.InUse()
			assert.Zero(t, w+rd)
			assert.Positive(t, r.Tiers[1].Evicted.Entries)
			assert.Positive(t, r.Tiers[0].DemotedOut.Entries)
			assert.Equal(t, r.Tiers[0].DemotedOut, r.Tiers[1].DemotedIn)
		})
	}
}

// The same with bytes: they are verified, buffers are few, and the end of the
// window cuts everything at once.
func TestNoScheduleHangsWithRealBytes(t *testing.T) {
	noLeaks(t)
	for _, slots := range []int{1, 4} {
		cfg := onFiles(t, 16)
		cfg.Limit = 40
		cfg.Planner.Sizer.BytesPerToken = 16 // 256 KiB or so for an entry
		cfg.Storage.MaxWriters, cfg.Storage.Verify = slots, content.VerifyFull
		cfg.Storage.GPUBytes, cfg.Storage.CPUBytes, cfg.Storage.StorageBytes = 1<<20, 3<<18, 5<<18
		r := mustRun(t, cfg)
		assert.Positive(t, r.Requests.Completed)
		assert.NoDirExists(t, cfg.Storage.Roots[0].Dir)
		for _, tier := range r.Tiers {
			assert.LessOrEqual(t, tier.PeakBytes, *tier.CapacityBytes)
		}
	}
}
