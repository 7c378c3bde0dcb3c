package requests

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/tiers/tiertest"
	"kvbench/workloads/formats"
	"kvbench/workloads/reuse"
	"kvbench/workloads/traces"
)

// curveOf is the hit curve of a block trace, at those capacities among others.
func curveOf(t *testing.T, path string, capacities ...int64) reuse.Summary {
	t.Helper()
	rows, err := traces.OpenRows(formats.Blocks, traces.Config{Paths: []string{path}, Cycles: 1})
	require.NoError(t, err)
	defer rows.Close()
	c := reuse.New(reuse.Config{Sizer: smallTokens, Capacities: capacities})
	require.NoError(t, rows.Each(c.Add))
	return c.Summary()
}

// branchingTrace writes conversations that branch and share prompts. A block that is not full is
// never requested again, as with engines whose ids depend on all of a block's tokens.
func branchingTrace(t *testing.T, path string, requests int) {
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
	f, err := os.Create(path)
	require.NoError(t, err)
	out := json.NewEncoder(f)
	for i := range requests {
		c := &live[rng.IntN(len(live))]
		if len(*c) > 60 || len(*c) == 0 {
			*c = slices.Clone(prompts[rng.IntN(len(prompts))])
		}
		*c = grow((*c)[:1+rng.IntN(len(*c))], 1+rng.IntN(12))
		require.NoError(t, out.Encode(map[string]any{"timestamp": i * 250, "output_length": 100,
			"hash_ids":     grow(slices.Clone(*c), 1),
			"input_length": len(*c)*512 + 1 + rng.IntN(512)}))
	}
	require.NoError(t, f.Close())
}

// One pass over a trace gives the hits, reads and writes of six replays, to the block and byte.
func TestCurveEqualsReplays(t *testing.T) {
	tiertest.OneThread(t)
	path := filepath.Join(t.TempDir(), "branches.jsonl")
	branchingTrace(t, path, 200)
	footprint := curveOf(t, path).Footprint
	var capacities []int64
	for i := int64(2); i < 20; i += 3 {
		capacities = append(capacities, (5<<20)+i*i*i*footprint/6000+i)
	}
	s := curveOf(t, path, capacities...)
	require.Zero(t, s.Resized)
	require.Less(t, s.LargestRequest, capacities[0])
	seen := map[int64]bool{}
	for _, p := range s.Points {
		if !p.Asked {
			continue
		}
		seen[p.Hits] = true
		res, _ := replayBlocks(t, path, 1, nullTiers(p.Capacity))
		b := res.BlockCache
		assert.Equal(t, [...]int64{b.Requests, b.Blocks, b.Tokens, *b.IdealHits},
			[...]int64{s.Requests, s.Blocks, s.Tokens, s.Points[len(s.Points)-1].Hits})
		assert.Equal(t, [...]int64{b.Hits, b.HitTokens, b.Unreachable, b.Written, b.BytesSaved,
			b.Writes.Blocks, res.Tiers[0].Write.Bytes},
			[...]int64{p.Hits, p.HitTokens, p.Unreachable, p.Written, p.ReadBytes, p.Written,
				p.WriteBytes}, "capacity %d", p.Capacity)
	}
	assert.Len(t, seen, 6, "the capacities differ in what they hit")
}
