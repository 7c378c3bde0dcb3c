package kvbench

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/tiers"
	"kvbench/workloads"
)

// smallTokens makes a block of 512 tokens 64 KiB.
var smallTokens = workloads.Sizer{BytesPerToken: 128}

// replayBlocks runs a whole block trace and returns its result and the hits of each request in order.
func replayBlocks(t *testing.T, path string, workers int, change func(*Config)) (*Result, []int) {
	t.Helper()
	var hits []int
	cfg := Config{
		Info: RunInfo{Benchmark: "BlockTrace", Division: DivisionQuick, Count: 1, Ranks: 1, Sizer: smallTokens},
		Source: func() (workloads.Source, error) {
			return workloads.NewBlockTrace(workloads.TraceConfig{Paths: []string{path}, Cycles: 1, Profile: workloads.DefaultProfile()})
		},
		Planner: workloads.Planner{Sizer: smallTokens}, Workers: workers, SourceEnds: true, EndedBy: EndedByInput,
		Storage:  StorageConfig{Chunk: 256 << 10, Depth: 1, Workers: workers, Verify: tiers.VerifyFull},
		OnBlocks: func(r *workloads.Request, s BlockSample) { hits = append(hits, s.Hits) },
	}
	change(&cfg)
	res, err := Run(t.Context(), cfg)
	require.NoError(t, err)
	require.Equal(t, StatusComplete, res.Status, res.Error)
	require.Equal(t, EndedByInput, res.EndedBy)
	require.NotNil(t, res.BlockCache)
	require.Equal(t, res.BlockCache.Requests, res.Requests.Completed)
	return res, hits
}

// nullTiers are a cache of that capacity that keeps no bytes.
func nullTiers(capacity int64) func(*Config) {
	return func(c *Config) {
		c.Storage.Levels = []tiers.LevelConfig{{Level: tiers.Storage, Tier: tiers.NewNullTier(), Capacity: capacity}}
	}
}

// slots keeps blocks in one file.
func slots(t *testing.T, capacity int64) func(*Config) {
	return func(c *Config) {
		directory(t, capacity)(c)
		c.Storage.Layout, c.Storage.Direct = tiers.Layout{Kind: tiers.LayoutSlots, Bytes: smallTokens.Bytes(512)}, true
	}
}

// directory is a real one.
func directory(t *testing.T, capacity int64) func(*Config) {
	return func(c *Config) { c.Storage.CacheDir, c.Storage.StorageBytes = t.TempDir(), capacity }
}

const smallTrace = "../testdata/mooncake-small.jsonl"

// A cache larger than the trace hits what a cache without bounds hits, whatever it is made of.
func TestBlocksHitTheIdeal(t *testing.T) {
	for name, cache := range map[string]func(*Config){
		"null": nullTiers(1 << 30), "directory": directory(t, 1<<30), "slots": slots(t, 1<<26), "three tiers": func(c *Config) {
			directory(t, 1<<30)(c)
			c.Storage.CPUBytes, c.Storage.GPUBytes, c.Storage.GPUBandwidth = 1<<20, 1<<20, 1e12
		},
	} {
		res, _ := replayBlocks(t, smallTrace, 8, cache)
		b := res.BlockCache
		assert.EqualValues(t, 258, b.Blocks, name)
		assert.EqualValues(t, 92, b.Hits)
		assert.EqualValues(t, 166, b.Written)
		assert.Equal(t, *b.IdealHitRatio, *b.HitRatio)
		assert.Equal(t, *b.HitRatio, *res.Lookups.HitRate, "hit-ratio on the benchmark line")
		assert.EqualValues(t, 92, res.Lookups.ByKind["block"].Hits)
		assert.EqualValues(t, b.HitTokens*128, b.BytesSaved)
		assert.Zero(t, res.Requests.FailedOperations)
		var over int64
		for _, n := range res.Timeline.BlockHits {
			over += n
		}
		assert.Equal(t, b.Hits, over)
	}
}

// With small caches the ratio falls with the size, and neither the storage nor the number of workers changes a single hit.
func TestBlockHitsAreAFunctionOfTraceAndCapacity(t *testing.T) {
	last := int64(-1)
	for _, blocks := range []int64{16, 20, 24, 40, 50, 170} {
		capacity := blocks * 512 * 128
		res, want := replayBlocks(t, smallTrace, 1, nullTiers(capacity))
		assert.Greater(t, res.BlockCache.Hits, last, "capacity %d", capacity)
		last = res.BlockCache.Hits
		for workers, cache := range map[int]func(*Config){
			2: nullTiers(capacity), 4: directory(t, capacity), 5: slots(t, capacity), 3: func(c *Config) { directory(t, capacity)(c); c.Storage.MaxWriters = 1 },
		} {
			_, got := replayBlocks(t, smallTrace, workers, cache)
			assert.Equal(t, want, got, "%d workers, capacity %d", workers, capacity)
		}
	}
	assert.EqualValues(t, 92, last)
}

// The run ends in time although decisions wait for each other.
func TestBlocksEndWithTheWindow(t *testing.T) {
	for range 5 {
		cfg := func(c *Config) {
			nullTiers(8 * 512 * 128)(c)
			c.Source = func() (workloads.Source, error) {
				return workloads.NewBlockTrace(workloads.TraceConfig{Paths: []string{smallTrace}, Profile: workloads.DefaultProfile()})
			}
			c.Window, c.SourceEnds = 30*time.Millisecond, false
		}
		var hits []int
		c := Config{Info: RunInfo{Benchmark: "BlockTrace", Sizer: smallTokens}, Planner: workloads.Planner{Sizer: smallTokens}, Workers: 8,
			Storage:  StorageConfig{Chunk: 256 << 10, Depth: 1, Workers: 8},
			OnBlocks: func(_ *workloads.Request, s BlockSample) { hits = append(hits, s.Hits) }}
		cfg(&c)
		res, err := Run(t.Context(), c)
		require.NoError(t, err)
		assert.Equal(t, EndedByDeadline, res.EndedBy)
		assert.NotEmpty(t, hits)
		total := res.Load["total"]
		assert.Equal(t, total.Offered, total.Completed+total.Failed+total.InFlight+total.Queued)
	}
}

// The whole Mooncake trace, 2.5 GiB with 128 bytes per token, where somebody has it: KVBENCH_TEST_MOONCAKE is its path.
func TestWholeMooncakeTrace(t *testing.T) {
	path := os.Getenv("KVBENCH_TEST_MOONCAKE")
	if path == "" {
		t.Skip("KVBENCH_TEST_MOONCAKE does not name mooncake's synthetic trace")
	}
	res, want := replayBlocks(t, filepath.Clean(path), 16, nullTiers(4<<30))
	assert.EqualValues(t, 3993, res.BlockCache.Requests)
	assert.EqualValues(t, 121877, res.BlockCache.Blocks)
	assert.InDelta(t, 0.63960, *res.BlockCache.HitRatio, 0.000005)
	assert.Equal(t, *res.BlockCache.IdealHitRatio, *res.BlockCache.HitRatio)
	if !testing.Short() {
		_, got := replayBlocks(t, path, 16, func(c *Config) { directory(t, 4<<30)(c); c.Storage.Direct = true; c.Storage.Verify = tiers.VerifyNone })
		assert.Equal(t, want, got)
	}
	last := *res.BlockCache.HitRatio
	for _, gib := range []float64{2, 1, 0.5, 0.25, 0.125} {
		capacity := int64(gib * (1 << 30))
		res, want := replayBlocks(t, path, 1, nullTiers(capacity))
		t.Logf("%g GiB: %.5f", gib, *res.BlockCache.HitRatio)
		assert.Less(t, *res.BlockCache.HitRatio, last)
		last = *res.BlockCache.HitRatio
		_, got := replayBlocks(t, path, 16, nullTiers(capacity))
		assert.Equal(t, want, got, "%g GiB", gib)
	}
}
