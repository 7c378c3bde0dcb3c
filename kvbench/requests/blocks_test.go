package requests

import (
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench"
	"kvbench/kvbench/record"
	"kvbench/kvbench/result"
	"kvbench/tiers"
	"kvbench/tiers/buffer"
	"kvbench/tiers/cache"
	"kvbench/tiers/content"
	"kvbench/tiers/objecttier"
	"kvbench/tiers/objecttier/s3test"
	"kvbench/tiers/objecttier/store"
	"kvbench/tiers/tiertest"
	"kvbench/tiers/transfer"
	"kvbench/workloads"
	"kvbench/workloads/formats"
	"kvbench/workloads/model"
	"kvbench/workloads/traces"
	"kvbench/workloads/users"
)

// smallTokens makes a block of 512 tokens 64 KiB.
var smallTokens = model.Sizer{BytesPerToken: 128}

// blockConfig serves a block trace once.
func blockConfig(path string, workers int) runConfig {
	return runConfig{
		engine{
			Info: record.Info{Result: result.Result{Benchmark: "BlockTrace",
				Division: result.DivisionQuick, Count: 1, Ranks: 1}, Sizer: smallTokens},
			Storage: kvbench.StorageConfig{
				Use: buffer.Use{Chunk: 256 << 10, Depth: 1, Workers: workers}},
		},
		Config{
			Source: func() (workloads.Source, error) {
				return traces.New(formats.Blocks,
					traces.Config{Paths: []string{path}, Cycles: 1, Profile: users.Default()})
			},
			Planner: workloads.Planner{Sizer: smallTokens}, Workers: workers,
			EndedBy: result.EndedByInput,
		},
	}
}

// replayBlocks runs a whole block trace and returns its result and the hits of each request in
// order.
func replayBlocks(t *testing.T, path string, workers int, change func(*runConfig)) (*result.Result,
	[]int) {
	t.Helper()
	var hits []int
	cfg := blockConfig(path, workers)
	cfg.Storage.Verify = content.VerifyFull
	cfg.OnBlocks = func(r *workloads.Request, s record.BlockSample) {
		hits = append(hits, int(s.Hits))
	}
	change(&cfg)
	res, err := runLoad(t.Context(), cfg)
	require.NoError(t, err)
	require.Equal(t, result.StatusComplete, res.Status, res.Error)
	require.Equal(t, result.EndedByInput, res.EndedBy)
	require.NotNil(t, res.BlockCache)
	require.Equal(t, res.BlockCache.Requests, res.Requests.Completed)
	return res, hits
}

// nullTiers is a cache of that capacity without bytes.
func nullTiers(capacity int64) func(*runConfig) {
	return func(c *runConfig) {
		c.Storage.Levels = []cache.Level{{Kind: tiers.Storage, Tier: transfer.New(tiertest.NewNull(), nil),
			Capacity: capacity}}
	}
}

// layouts are all ways to keep blocks of 512 tokens in files.
var layouts = map[string]tiers.Layout{
	"block":    {},
	"slots":    {Kind: tiers.LayoutSlots, Bytes: smallTokens.Bytes(512)},
	"packed=4": {Kind: tiers.LayoutPacked, Places: 4},
}

// laidOut is a real directory with that layout.
func laidOut(t *testing.T, layout string, capacity int64) func(*runConfig) {
	return func(c *runConfig) {
		directory(t, capacity)(c)
		c.Storage.Layout, c.Storage.Direct = layouts[layout], true
		if runtime.GOOS == "darwin" && c.Storage.Layout.Kind == tiers.LayoutPacked {
			t.Skip("packed files need holes")
		}
	}
}

// directory is a real one.
func directory(t *testing.T, capacity int64) func(*runConfig) {
	return func(c *runConfig) {
		c.Storage.Roots, c.Storage.StorageBytes = []kvbench.Root{{Dir: t.TempDir()}}, capacity
	}
}

const (
	smallTrace   = "../../testdata/mooncake-small.jsonl"
	smallSession = "../../testdata/session-small.json"
)

// Each request's hits follow from the trace and the capacity: neither the storage nor the number of
// workers changes one. The ratio rises with the capacity, to that of an unbounded cache.
func TestBlockHitsAreAFunctionOfTraceAndCapacity(t *testing.T) {
	last := int64(-1)
	for _, blocks := range []int64{16, 20, 50, 512} {
		if buffer.RaceEnabled && blocks != 20 {
			continue
		}
		capacity := blocks * 512 * 128
		res, want := replayBlocks(t, smallTrace, 1, nullTiers(capacity))
		assert.Greater(t, res.BlockCache.Hits, last, "capacity %d", capacity)
		last = res.BlockCache.Hits
		caches := map[string]func(*runConfig){"null": nullTiers(capacity)}
		if blocks == 20 || blocks == 512 { // with many evictions, and none
			for layout := range layouts {
				caches[layout] = func(c *runConfig) {
					laidOut(t, layout, capacity)(c)
					switch {
					case blocks == 20 && layout == "block":
						c.Storage.MaxWriters = 1
					case blocks == 512 && layout != "slots": // under gpu and cpu
						c.Storage.CPUBytes, c.Storage.GPUBytes, c.Storage.GPUBandwidth = 1<<20, 1<<20,
							1e12
					}
				}
			}
		}
		workers := 2
		for name, cache := range caches {
			res, got := replayBlocks(t, smallTrace, workers, cache)
			assert.Equal(t, want, got, "%s, %d workers, capacity %d", name, workers, capacity)
			if blocks == 512 {
				checkIdeal(t, name, res)
			}
			workers++
		}
	}
	assert.True(t, buffer.RaceEnabled || last == 92, last)
}

// checkIdeal checks the result of a cache larger than the small trace, whatever its tiers are.
func checkIdeal(t *testing.T, name string, res *result.Result) {
	t.Helper()
	b := res.BlockCache
	assert.EqualValues(t, []int64{258, 92, 166}, []int64{b.Blocks, b.Hits, b.Written}, name)
	assert.Equal(t, *b.IdealHitRatio, *b.HitRatio)
	assert.Equal(t, *b.HitRatio, *res.Lookups.HitRate, "hit-ratio on the benchmark line")
	assert.EqualValues(t, 92, res.Lookups.ByKind["block"].Hits)
	assert.EqualValues(t, b.HitTokens*128, b.BytesSaved)
	assert.Zero(t, res.Requests.FailedOperations)
	assert.Equal(t, b.Hits, b.Reads.Blocks, name)
	assert.Equal(t, b.Written, b.Writes.Blocks)
	assert.Equal(t, res.Requests.Operations, b.Reads.Operations+b.Writes.Operations)
	assert.Equal(t, b.BytesSaved, res.FirstReads.Bytes+res.ReReads.Bytes, "read once per hit")
	var over int64
	for _, n := range res.Timeline.BlockHits {
		over += n
	}
	assert.Equal(t, b.Hits, over)
	for _, n := range res.Timeline.BlockIdeal {
		over -= *n
	}
	assert.Zero(t, over, "the ideal over time adds up to the ideal")
}

// Blocks share packed files, and one request reads them where one request wrote them.
func TestBlocksOfSessionsShareFiles(t *testing.T) {
	res, want := replayBlocks(t, smallSession, 1, nullTiers(1<<30))
	require.Equal(t, res.BlockCache.Reads.Blocks, res.BlockCache.Reads.Operations,
		"null tiers have no neighbours")
	require.Positive(t, res.BlockCache.Hits)
	res, got := replayBlocks(t, smallSession, 3, laidOut(t, "packed=4", 1<<26))
	assert.Equal(t, want, got)
	b := res.BlockCache
	assert.Less(t, b.Writes.Operations, b.Writes.Blocks)
	assert.GreaterOrEqual(t, 4*b.Writes.Operations, b.Writes.Blocks)
	assert.Less(t, b.Reads.Operations, b.Reads.Blocks)
	assert.GreaterOrEqual(t, 4*b.Reads.Operations, b.Reads.Blocks)
	storage := res.Latency.Levels["storage"]
	assert.Equal(t, b.Reads.Operations, storage.Read.Device.Count, "one sample per request")
	assert.Equal(t, b.Writes.Operations, storage.Write.Device.Count)
}

// The run ends in time although decisions wait for each other.
func TestBlocksEndWithTheWindow(t *testing.T) {
	tiertest.OneThread(t)
	for window := 28 * ms; window < 33*ms; window += 2 * ms {
		var hits []int
		c := blockConfig("", 8)
		c.Source = func() (workloads.Source, error) {
			return traces.New(formats.Blocks,
				traces.Config{Paths: []string{smallTrace}, Profile: users.Default()})
		}
		c.Window, c.EndedBy = window, ""
		c.Storage.StorageBytes = 8 * 512 * 128
		c.OnBlocks = func(_ *workloads.Request, s record.BlockSample) {
			hits = append(hits, int(s.Hits))
		}
		drive := tiers.DeviceModel{Read: 1 << 30, Write: 1 << 30, ReadLatency: ms / 10,
			WriteLatency: ms / 10, Parallelism: 4}
		res, err := simulateLoad(t.Context(), c, kvbench.SimConfig{Device: &drive})
		require.NoError(t, err)
		assert.Equal(t, result.EndedByDeadline, res.EndedBy)
		assert.NotEmpty(t, hits)
		total := res.Load["total"]
		assert.Equal(t, total.Offered, total.Completed+total.Failed+total.InFlight+total.Queued)
	}
}

// The whole Mooncake trace, 2.5 GiB with 128 bytes per token. KVTEST_MOONCAKE is its path; without
// it the test skips. KVTEST_LAYOUT picks one layout.
func TestWholeMooncakeTrace(t *testing.T) {
	path := os.Getenv("KVTEST_MOONCAKE")
	if path == "" {
		t.Skip("KVTEST_MOONCAKE does not name mooncake's synthetic trace")
	}
	path = filepath.Clean(path)
	res, want := replayBlocks(t, path, 16, nullTiers(3<<30))
	assert.EqualValues(t, 3993, res.BlockCache.Requests)
	assert.EqualValues(t, 121877, res.BlockCache.Blocks)
	assert.InDelta(t, 0.63960, *res.BlockCache.HitRatio, 0.000005)
	assert.Equal(t, *res.BlockCache.IdealHitRatio, *res.BlockCache.HitRatio)
	sequences := map[float64][]int{}
	ratios := map[float64]float64{2: 0.63372, 1: 0.53812, 0.5: 0.38328, 0.25: 0.25033,
		0.125: 0.15063}
	for gib, ratio := range ratios {
		capacity := int64(gib * (1 << 30))
		res, want := replayBlocks(t, path, 1, nullTiers(capacity))
		assert.InDelta(t, ratio, *res.BlockCache.HitRatio, 0.000005, "%g GiB", gib)
		_, got := replayBlocks(t, path, 16, nullTiers(capacity))
		assert.Equal(t, want, got, "%g GiB", gib)
		sequences[gib] = want
	}
	if testing.Short() {
		return
	}
	for layout := range layouts {
		if only := os.Getenv("KVTEST_LAYOUT"); only != "" && only != layout {
			continue
		}
		t.Run(layout, func(t *testing.T) {
			for gib, want := range map[float64][]int{3: want, 0.25: sequences[0.25]} {
				res, got := replayBlocks(t, path, 16, func(c *runConfig) {
					laidOut(t, layout, int64(gib*(1<<30)))(c)
					c.Storage.Verify = content.VerifySample
				})
				// a difference of 3993 requests is nothing to print
				assert.True(t, slices.Equal(want, got), "%g GiB", gib)
				b := res.BlockCache
				t.Logf("%g GiB: %.5f, %d blocks read by %d operations, %d written by %d, in %v",
					gib, *b.HitRatio, b.Reads.Blocks, b.Reads.Operations, b.Writes.Blocks,
					b.Writes.Operations, time.Duration(res.WindowNS).Round(time.Millisecond))
			}
		})
	}
}

// A run is compared with a recorded one by the requests that find something: 46 of 60 of the small
// trace, 0.767.
func TestValidationTrace(t *testing.T) {
	for text, passed := range map[string]bool{
		// 0.667: 15 % off
		`[{"cache_hit": true}, {"cache_hit": true}, {"cache_hit": false}]`: false,
		// 0.75
		"[" + strings.Repeat(`{"cache_hit": true}, `, 3) + `{"cache_hit": false}]`: true,
		`[{"read_bytes": 1000, "write_bytes": 1}]`:                                 false,
	} {
		path := filepath.Join(t.TempDir(), "v.json")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		res, _ := replayBlocks(t, smallTrace, 2,
			func(cfg *runConfig) { nullTiers(1 << 30)(cfg); cfg.ValidationTrace = path })
		require.NotNil(t, res.Recording)
		assert.Equal(t, path, res.Recording.Trace)
		assert.Equal(t, passed, res.Recording.Passed, text)
	}
}

// A window that ends before a block trace has its part's hits and not the trace's: the input, a
// warning and no hit ratio on the line say so.
func TestAPartOfATraceIsNotTakenForTheTrace(t *testing.T) {
	run := func(change func(*runConfig)) (r *result.Result, onLine bool) {
		cfg := blockConfig(smallTrace, 4)
		cfg.Storage.StorageBytes = 1 << 30
		cfg.Info.Workload.Population = &result.Population{Rows: 60}
		change(&cfg)
		r, err := simulateLoad(t.Context(), cfg, kvbench.SimConfig{Device: sumsDevice})
		require.NoError(t, err)
		return r, slices.ContainsFunc(r.Metrics(), func(m result.Metric) bool {
			return strings.HasSuffix(m.Unit, "hit-ratio")
		})
	}
	whole, onLine := run(func(*runConfig) {})
	assert.EqualValues(t, 60, whole.Input.Rows)
	assert.Nil(t, whole.Input.TotalRows)
	assert.True(t, onLine)
	assert.Empty(t, whole.Warnings)

	cut, onLine := run(func(c *runConfig) { c.Window = 3 * time.Millisecond })
	require.Equal(t, result.EndedByDeadline, cut.EndedBy)
	assert.Less(t, cut.Input.Rows, int64(60))
	assert.EqualValues(t, 60, *cut.Input.TotalRows)
	assert.False(t, onLine, "how much it was depends on the drive")
	assert.Regexp(t, "only the first [0-9]+ rows? of the recording were replayed", strings.Join(cut.Warnings, "\n"))

	counted, onLine := run(func(c *runConfig) { c.Limit = 20 })
	assert.EqualValues(t, 60, *counted.Input.TotalRows)
	assert.True(t, onLine, "that many were asked for")
}

// A HEAD for each block until the first that the store lacks, before a GET of the request.
func TestLookupsComeBeforeReads(t *testing.T) {
	d := s3test.Start(t, s3test.Config{Buckets: []string{"bucket"}}, 2)
	var want, heads, missed int64
	_, _ = replayBlocks(t, smallTrace, 1, func(c *runConfig) {
		c.Storage.StorageBytes, c.Storage.Depth = 1<<30, 2
		c.Storage.Bucket = &kvbench.Bucket{Lookup: true,
			Config: objecttier.Config{Store: store.Config{Bucket: "bucket", Region: "us-east-1",
				URLs: d.URLs(), Balance: store.RoundRobin,
				Payload: store.Unsigned, Credentials: s3test.Credentials("key"),
				Timeout: 30 * time.Second, ConnectTimeout: 5 * time.Second, Connections: 64},
				Prefix: "runs", Names: objecttier.Names{Format: objecttier.Own},
				MultipartAbove: 40 << 10, PartSize: 32 << 10, RangeSize: 28 << 10}}
		c.OnBlocks = func(_ *workloads.Request, s record.BlockSample) {
			want += s.Hits
			if s.Hits < s.Blocks {
				want++
			}
		}
	})
	for _, e := range d.Log() {
		if e.Op == s3test.Head && !strings.Contains(e.Key, "/.kvbench-check-") {
			heads++
			if e.Status == http.StatusNotFound {
				missed++
			}
		}
	}
	assert.Equal(t, want, heads)
	assert.Positive(t, missed)
}
