package curve

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench"
	"kvbench/kvbench/record"
	"kvbench/kvbench/requests"
	"kvbench/kvbench/result"
	"kvbench/tiers"
	"kvbench/tiers/buffer"
	"kvbench/tiers/cache"
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

// counted returns the curve of a block trace, at those capacities among others.
func counted(t *testing.T, path string, capacities ...int64) *Report {
	t.Helper()
	rows, err := traces.Open(formats.Blocks, traces.Config{Paths: []string{path}, Cycles: 1})
	require.NoError(t, err)
	c := newCounter(smallTokens, capacities, 0)
	require.NoError(t, rows.Each(c.add))
	return reported(c)
}

// replayed returns the result of a benchmark that replays a block trace on a cache of that capacity.
func replayed(t *testing.T, path string, capacity int64) *result.Result {
	t.Helper()
	load := requests.New(requests.Config{
		Source: func() (workloads.Source, error) {
			return traces.New(formats.Blocks,
				traces.Config{Paths: []string{path}, Cycles: 1, Profile: users.Default()})
		},
		Planner: workloads.Planner{Sizer: smallTokens}, Workers: 1, EndedBy: result.EndedByInput,
	})
	res, err := kvbench.Run(t.Context(), kvbench.Config{
		Info: record.Info{Result: result.Result{Benchmark: "BlockTrace", Division: result.DivisionQuick,
			Count: 1, Ranks: 1}, Sizer: smallTokens},
		Storage: kvbench.StorageConfig{
			Use: buffer.Use{Chunk: 256 << 10, Depth: 1, Workers: 1},
			Levels: []cache.Level{{Kind: tiers.Storage, Tier: transfer.New(tiertest.NewNull(), nil),
				Capacity: capacity}}},
	}, load)
	require.NoError(t, err)
	require.Equal(t, result.StatusComplete, res.Status, res.Error)
	return res
}

// conversations writes conversations that branch and share prompts. If grow is set, the last block of a
// conversation that is not full is requested again as a full one, which no engine does whose ids depend on
// all of a block's tokens.
func conversations(t *testing.T, requests int, grows bool) (path string) {
	t.Helper()
	rng, next := rand.New(rand.NewPCG(5, 6)), int64(0)
	prompts, live := make([][]int64, 8), make([][]int64, 30)
	grow := func(ids []int64, n int) []int64 {
		for range n {
			ids = append(ids, next)
			next++
		}
		return ids
	}
	for i := range prompts {
		prompts[i] = grow(nil, 1+rng.IntN(16))
	}
	path = filepath.Join(t.TempDir(), "branches.jsonl")
	f, err := os.Create(path)
	require.NoError(t, err)
	out := json.NewEncoder(f)
	for i := range requests {
		c := &live[rng.IntN(len(live))]
		if len(*c) > 60 || len(*c) == 0 {
			*c = slices.Clone(prompts[rng.IntN(len(prompts))])
		}
		*c = grow((*c)[:1+rng.IntN(len(*c))], 1+rng.IntN(12))
		ids := *c
		if !grows {
			ids = grow(slices.Clone(ids), 1)
		}
		require.NoError(t, out.Encode(map[string]any{"timestamp": i * 250, "output_length": 100,
			"hash_ids": ids, "input_length": len(ids)*512 - rng.IntN(512)}))
	}
	require.NoError(t, f.Close())
	return path
}

// One pass over a trace gives the hits, reads and writes of six replays, to the block and byte.
func TestCurveEqualsReplays(t *testing.T) {
	tiertest.OneThread(t)
	path := conversations(t, 200, false)
	footprint := counted(t, path).FootprintBytes
	var capacities []int64
	for i := int64(2); i < 20; i += 3 {
		capacities = append(capacities, (5<<20)+i*i*i*footprint/6000+i)
	}
	r := counted(t, path, capacities...)
	require.Zero(t, r.Resized)
	seen := map[int64]bool{}
	for _, p := range r.Points {
		if !p.Asked {
			continue
		}
		require.True(t, p.Fits)
		seen[p.Hits] = true
		res := replayed(t, path, p.CapacityBytes)
		b := res.BlockCache
		assert.Equal(t, [...]int64{b.Requests, b.Blocks, b.Tokens, *b.IdealHits},
			[...]int64{r.Requests, r.Blocks, r.Tokens, r.ideal})
		assert.Equal(t, [...]int64{b.Hits, b.Unreachable, b.Written, b.BytesSaved, b.Writes.Blocks,
			res.Tiers[0].Write.Bytes}, [...]int64{p.Hits, p.Kept, p.Written, p.ReadBytes, p.Written,
			p.WriteBytes}, "capacity %d", p.CapacityBytes)
		assert.Equal(t, []*float64{b.HitRatio, b.TokenHitRatio, b.PrefixHitRatio},
			[]*float64{p.HitRatio, p.TokenHitRatio, p.PrefixHitRatio}, "capacity %d", p.CapacityBytes)
	}
	assert.Len(t, seen, 6, "the capacities differ in what they hit")
}

// Where blocks grow between requests, the curve is as near as their first sizes are.
func TestCurveOfGrowingBlocks(t *testing.T) {
	tiertest.OneThread(t)
	path := conversations(t, 500, true)
	capacity := counted(t, path).FootprintBytes / 10
	r := counted(t, path, capacity)
	assert.Positive(t, r.Resized)
	i := slices.IndexFunc(r.Points, func(p Point) bool { return p.CapacityBytes == capacity })
	assert.InDelta(t, *replayed(t, path, capacity).BlockCache.HitRatio, *r.Points[i].HitRatio, 0.02)
}
