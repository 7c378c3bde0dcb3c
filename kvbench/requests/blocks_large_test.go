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

	"kvbench/tiers/buffer"
)

// agentTrace writes a block trace like Mooncake's: conversations that begin with one of twenty
// common prompts and grow by some blocks per turn, several at a time. It returns its distinct
// blocks.
func agentTrace(t *testing.T, path string, requests int) (distinct int64) {
	t.Helper()
	rng := rand.New(rand.NewPCG(1, 2))
	fresh := func(n int) (ids []int64) {
		for range n {
			ids = append(ids, distinct)
			distinct++
		}
		return ids
	}
	prompts := make([][]int64, 20)
	for i := range prompts {
		prompts[i] = fresh(1 + rng.IntN(16))
	}
	live := make([][]int64, 40)
	f, err := os.Create(path)
	require.NoError(t, err)
	out := json.NewEncoder(f)
	for i := range requests {
		c := &live[rng.IntN(len(live))]
		if len(*c) > 60 || len(*c) > 0 && rng.IntN(8) == 0 {
			*c = nil
		}
		if *c == nil {
			*c = slices.Clone(prompts[min(rng.IntN(20), rng.IntN(20))])
		}
		*c = append(*c, fresh(1+rng.IntN(12))...)
		require.NoError(t, out.Encode(map[string]any{
			"timestamp": i * 250, "output_length": 100, "hash_ids": *c,
			"input_length": len(*c)*512 - rng.IntN(512),
		}))
	}
	require.NoError(t, f.Close())
	return distinct
}

// The hit ratios of a trace of 1,500 requests do not change, and neither they nor any single hit
// depends on the number of workers. TestWholeMooncakeTrace tests the same with Mooncake's trace,
// which this repository does not contain.
func TestBlockHitsOfALargeTrace(t *testing.T) {
	if buffer.RaceEnabled {
		t.Skip("TestBlockHitsAreAFunctionOfTraceAndCapacity has as many workers and fewer blocks")
	}
	path := filepath.Join(t.TempDir(), "agents.jsonl")
	distinct := agentTrace(t, path, 1500)
	for _, c := range []struct{ share, ratio float64 }{
		{0.1, 0.65489}, {0.02, 0.20705},
	} {
		capacity := int64(c.share * float64(distinct*smallTokens.Bytes(512)))
		res, want := replayBlocks(t, path, 1, nullTiers(capacity))
		assert.EqualValues(t, 50573, res.BlockCache.Blocks)
		assert.InDelta(t, c.ratio, *res.BlockCache.HitRatio, 0.000005, "%v of all blocks", c.share)
		_, got := replayBlocks(t, path, 16, nullTiers(capacity))
		assert.Equal(t, want, got, "%v of all blocks", c.share)
	}
}
