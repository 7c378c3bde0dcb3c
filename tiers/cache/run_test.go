package cache

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/tiers"
	"kvbench/tiers/filetier"
	"kvbench/tiers/tiertest"
	"kvbench/tiers/transfer"
)

// requestCounter is an Observer that counts the requests to the storage tier.
type requestCounter struct {
	NoObserver
	reads, writes atomic.Int64
}

func (r *requestCounter) Chunk(_ Tag, l tiers.Kind, _ tiers.Phase, c tiers.Chunk) {
	switch {
	case l != tiers.Storage || c.Flush:
	case c.Op == tiers.Read:
		r.reads.Add(1)
	default:
		r.writes.Add(1)
	}
}

// layoutCache makes a cache over a real directory, and, if cpu > 0, memory above it.
func layoutCache(t *testing.T, l tiers.Layout, direct bool, cpu, capacity int64) (
	*Cache, *requestCounter, tiers.Files,
) {
	t.Helper()
	tier := tiertest.Files(t, filetier.Config{Layout: l, Direct: direct, Capacity: capacity})
	x, count := tiertest.Transfer(t, tiertest.Chunk, 1), &requestCounter{}
	cfg := Config{Clock: x.Clock, Observer: count, Source: x.Content.Source,
		Sink: &x.Verifier}
	if cpu > 0 {
		cfg.Levels = append(cfg.Levels,
			Level{Kind: tiers.CPU, Tier: transfer.New(tiertest.Memory(t, cpu), x.Settings),
				Capacity: cpu})
	}
	cfg.Levels = append(cfg.Levels, Level{Kind: tiers.Storage,
		Tier: transfer.New(tier, x.Settings), Capacity: capacity})
	c, err := New(cfg)
	require.NoError(t, err)
	return c, count, tier
}

// Many workers evict, read and write runs of blocks in a real directory. The decisions are the same
// as with one worker without files, every byte is verified, and the tier holds the cache's objects.
func TestLayoutsUnderEviction(t *testing.T) {
	const unit = 1 << 10 // blocks are up to 8 KiB
	requests := blockRequests(3, 120)
	for i := range requests {
		for k := range requests[i] {
			requests[i][k].Size *= unit
		}
	}
	const capacity = 800 * unit
	stores, _ := testCache(t, 0, 0, 0, capacity)
	want := play(t, stores, requests, 1, false)
	require.Positive(t, stores.left()[0])
	moved := map[rune]int64{}
	for _, d := range want {
		for _, o := range d {
			moved[o]++
		}
	}
	for name, l := range map[string]tiers.Layout{
		"files": {}, "slots": {Kind: tiers.LayoutSlots, Bytes: 8 * unit},
		"packed": {Kind: tiers.LayoutPacked, Places: 5},
	} {
		for _, direct := range []bool{true, false} {
			if !direct && l.Kind != tiers.LayoutPacked {
				continue // it differs only in its flushes, and takes long
			}
			t.Run(fmt.Sprintf("%s/direct=%t", name, direct), func(t *testing.T) {
				c, count, tier := layoutCache(t, l, direct, 0, capacity)
				assert.Equal(t, want, play(t, c, requests, 8, false))
				assert.Equal(t, cacheState(stores), cacheState(c))
				runs := tier.Traits().Extent > 0
				assert.Equal(t, runs, count.reads.Load() < moved['h']*3/4,
					"%d blocks read by %d requests", moved['h'], count.reads.Load())
				if l.Kind != tiers.LayoutSlots { // its free slots are scattered by then
					assert.Equal(t, runs, count.writes.Load() < moved['m']*3/4,
						"%d blocks written by %d requests", moved['m'], count.writes.Load())
				}
				sameFootprint(t, c, tier)
			})
		}
		if testing.Short() {
			continue // real files take long
		}
		t.Run(name+"/cancelled", func(t *testing.T) {
			c, _, tier := layoutCache(t, l, true, 300*unit, capacity/2)
			play(t, c, requests, 8, true)
			require.NoError(t, c.check())
			sameFootprint(t, c, tier)
			c.clear(t)
			sameFootprint(t, c, tier)
		})
	}
}

// sameFootprint checks that the tier holds as many bytes as the cache, if the tier counts them.
func sameFootprint(t *testing.T, c *Cache, tier tiers.Files) {
	t.Helper()
	f, ok := tier.(interface{ Footprint() (held, waste int64) })
	if !ok {
		return
	}
	held, _ := f.Footprint()
	gauges := c.Gauges(nil)
	assert.Equal(t, gauges[len(gauges)-1].Used, held)
}
