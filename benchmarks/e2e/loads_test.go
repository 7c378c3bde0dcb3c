package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/tiers"
)

// A block trace is replayed with each layout, hits the same, and is judged by a recorded run.
func TestBlockTraceLayouts(t *testing.T) {
	t.Parallel()
	for _, layout := range []string{"entry", "packed=3"} {
		b := newBench(t)
		recorded := filepath.Join(b.work, "recorded.json")
		require.NoError(t, os.WriteFile(recorded,
			[]byte(`[{"cache_hit": true}, {"cache_hit": false}, {"cache_hit": false}]`), 0o600))
		b.ok(append(append(b.micro(), b.places()...), "-test.bench=BlockTrace",
			"-test.benchtime=1h", // the input's end ends it, however slow the machine is
			"-block-trace-path="+data(t, "mooncake-small.jsonl"), "-layout="+layout,
			"-validation-trace="+recorded, "-verify=full")...)
		res := theResult(t, b.results)
		require.NotNil(t, res.BlockCache)
		assert.EqualValues(t, 258, res.BlockCache.Blocks)
		assert.EqualValues(t, 92, res.BlockCache.Hits)
		assert.Equal(t, layout == "packed=3", res.BlockCache.Reads.Operations < res.BlockCache.Reads.Blocks,
			layout)
		require.NotNil(t, res.Recording)
		assert.False(t, res.Recording.Passed)
		assert.False(t, exists(b.cache), "nothing is left behind")
	}
	b := newBench(t)
	b.ok(append(append(b.micro(), b.places()...), "-test.bench=BlockTrace",
		"-block-trace-path="+data(t, "mooncake-small.jsonl"), "-layout=slots",
		// of entries that fit into the slots
		"-trace-speedup=0", "-precondition", "-precondition-size-gb=0.3")...)
}

// A block trace is replayed as each engine would keep it: in its objects, past the page cache or
// not, and nothing of it is left behind.
func TestEngineLayouts(t *testing.T) {
	t.Parallel()
	for _, l := range tiers.EngineLayouts {
		b := newBench(t)
		args := append(append(b.micro(), b.places()...), "-test.bench=BlockTrace",
			"-block-trace-path="+data(t, "mooncake-small.jsonl"), "-layout="+l.Name,
			"-trace-speedup=0", "-test.benchtime=1h", "-verify=full") // the input's end ends it
		b.ok(args...)
		res := theResult(t, b.results)
		require.NotNil(t, res.BlockCache, l.Name)
		per := int64(512 / l.Tokens)
		assert.GreaterOrEqual(t, res.BlockCache.Hits, 80*per, l.Name)
		assert.Equal(t, *res.BlockCache.IdealHitRatio, *res.BlockCache.HitRatio)
		assert.Equal(t, l.Depth > 1, res.BlockCache.Reads.Operations < res.BlockCache.Reads.Blocks)
		assert.Equal(t, map[bool]string{true: "direct", false: "buffered"}[l.Direct], res.IO.Mode)
		assert.Equal(t, l.LooksUp, res.Requests.Time.Lookup > 0, l.Name)
		assert.False(t, exists(b.cache), "nothing is left behind")
		// What stays in memory, until it fills a bucket, is no load of the storage.
		storage := res.Tiers[len(res.Tiers)-1]
		assert.Equal(t, l.Buckets, storage.Write.Bytes+storage.Read.Bytes == 0, l.Name)
		assert.Equal(t, storage.Read.EntryBytes, storage.Read.Bytes+storage.Read.MemoryBytes)
	}
	// The prompts of users are split in the same way.
	b := newBench(t)
	b.ok(append(append(b.micro(), b.places()...), "-test.bench=MultiTurn", "-test.benchtime=20x",
		"-layout=mooncake-bucket", "-object-tokens=8", "-verify=full")...)
	res := theResult(t, b.results)
	require.NotNil(t, res.BlockCache)
	assert.Positive(t, res.BlockCache.Writes.Operations)
	assert.Positive(t, res.BlockCache.Hits)
	assert.Equal(t, res.BlockCache.Tokens, res.BlockCache.Blocks*8)
	assert.Nil(t, res.BlockCache.IdealHitRatio)
	assert.False(t, exists(b.cache), "nothing is left behind")
}

// The I/O of all tensor-parallel ranks: the bytes of each, in files of their own or in one file.
func TestTensorParallelRanks(t *testing.T) {
	t.Parallel()
	group := []string{"-num-gpus=4", "-tensor-parallel=4", "-tp-io=all"}
	for _, layout := range []string{"lmcache-fs", "vllm-fs"} {
		b := newBench(t)
		b.ok(slices.Concat(b.micro(), b.places(), group, []string{"-test.bench=MultiTurn",
			"-max-requests=20", "-layout=" + layout, "-object-tokens=8", "-verify=full"})...)
		res := theResult(t, b.results)
		require.NotNil(t, res.BlockCache, layout)
		const token = 4096 // of micro
		assert.EqualValues(t, 4, res.Model.StoringRanks, layout)
		assert.EqualValues(t, token/4, res.Model.RankBytesPerToken, layout)
		storage := res.Tiers[len(res.Tiers)-1]
		assert.Equal(t, res.BlockCache.Writes.Blocks*8*token, storage.Write.Bytes, layout)
		assert.Equal(t, res.BlockCache.Reads.Blocks*8*token, storage.Read.Bytes, layout)
		assert.Positive(t, storage.Read.Bytes, layout)
		summary, err := os.ReadFile(filepath.Join(b.results, "MultiTurn", "trial_0", "rank_0",
			"summary.txt"))
		require.NoError(t, err)
		assert.Contains(t, string(summary), "1 KiB per token on each of 4 ranks, which all store, "+
			"tensor parallel 4")
		assert.False(t, exists(b.cache), "nothing is left behind")
	}
}

// Layer by layer: each object has a file of each of the two layers, and a part of the computing
// overlaps with loading.
func TestLayerByLayer(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.ok(slices.Concat(b.micro(), b.places(), []string{"-test.bench=MultiTurn", "-max-requests=20",
		"-workers=1", "-layerwise", "-layout=lmcache-fs", "-object-tokens=8",
		"-prefill-rate=100000", "-verify=full", "-keep-files"})...)
	real := theResult(t, b.results)
	var layers, objects = 0, map[string]bool{}
	name := regexp.MustCompile(`@([0-9a-f]{64})@([0-9]+)\.data$`)
	require.NoError(t, filepath.WalkDir(b.cache, func(path string, _ os.DirEntry, err error) error {
		if m := name.FindStringSubmatch(path); m != nil {
			objects[m[1]] = true
			layers++
		}
		return err
	}))
	require.Positive(t, real.BlockCache.Reads.Blocks)
	assert.Len(t, objects, int(real.Tiers[0].Entries))
	assert.Equal(t, 2*len(objects), layers)
	assert.Positive(t, real.FirstToken.Sums.Overlap)
	summary, err := os.ReadFile(filepath.Join(b.results, "MultiTurn", "trial_0", "rank_0",
		"summary.txt"))
	require.NoError(t, err)
	assert.Contains(t, real.Tiers[0].Description, ", a file for each layer")
	assert.Contains(t, string(summary), " with waiting, layer by layer, while the GPU computed ")
}

// A model with windows has a file of each group of layers, and of the windowed one those files are
// read alone that lie in the window.
func TestGroupsOfLayers(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	model := filepath.Join(b.work, "config.json")
	require.NoError(t, os.WriteFile(model, []byte(`{"num_hidden_layers": 2, "hidden_size": 128,
		"num_attention_heads": 1, "head_dim": 256, "sliding_window": 17,
		"layer_types": ["sliding_attention", "full_attention"]}`), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(b.work, "hf_quant_config.json"),
		[]byte(`{"quantization": {"kv_cache_quant_algo": "FP8"}}`), 0o600))
	b.ok(slices.Concat(b.micro(), b.places(), []string{"-test.bench=MultiTurn", "-model=" + model,
		"-max-requests=20", "-num-users=2", "-workers=1", "-layout=vllm-fs", "-object-tokens=8",
		"-verify=full", "-keep-files"})...)
	res := theResult(t, b.results)
	const file = 8 * 512 // of a group and object
	sizes := make(map[string]int)
	require.NoError(t, filepath.WalkDir(b.cache, func(path string, d os.DirEntry, err error) error {
		if strings.HasSuffix(path, ".bin") {
			info, err := d.Info()
			require.NoError(t, err)
			assert.EqualValues(t, file, info.Size())
			_, group, _ := strings.Cut(filepath.Base(filepath.Dir(path)), "_")
			sizes[group]++
		}
		return err
	}))
	storage, n := res.Tiers[0], int(res.Tiers[0].Entries)
	assert.Equal(t, map[string]int{"g0": n, "g1": n}, sizes)
	hits := res.BlockCache.Reads.Blocks
	require.Greater(t, hits, int64(20), "prompts that found more objects than a window has")
	assert.Equal(t, res.BlockCache.Writes.Blocks*2*file, storage.Write.Bytes)
	// The last two objects that a request found are read of both groups, the others of one.
	assert.Greater(t, storage.Read.Bytes, hits*file)
	assert.LessOrEqual(t, storage.Read.Bytes, hits*file+20*2*file)
	assert.Contains(t, storage.Description, "objects of 8 tokens, a file for each of 2 groups of "+
		"layers")
}

// -engine sets all parameters of an engine, and the summary names those that the user changed.
func TestEngines(t *testing.T) {
	t.Parallel()
	for engine, policy := range map[string]string{"vllm": "write-through, promotion on-hit",
		"mooncake": "write-through, promotion never, eviction bucket",
		"dynamo":   "selective, promotion never"} {
		b := newBench(t)
		b.ok(append(append(b.micro(), b.places()...), "-test.bench=MultiTurn",
			// Two users alone: in any order of 20 requests one comes again, whose blocks are then
			// used for the second time, as -engine dynamo asks before it copies them.
			"-num-users=2", "-test.benchtime=20x", "-engine="+engine, "-object-tokens=8",
			"-cpu-mem-gb=0.002", "-verify=full")...)
		res := theResult(t, b.results)
		require.NotNil(t, res.Policy, engine)
		assert.Positive(t, res.Policy.Copied.Bytes+res.Policy.Unwritten.Bytes, engine)
		summary, err := os.ReadFile(filepath.Join(b.results, "MultiTurn", "trial_0",
			"rank_0", "summary.txt"))
		require.NoError(t, err)
		lines := strings.Split(string(summary), "\n")
		has(t, lines, "engine      "+engine+": tier-policy ", ", layout ")
		has(t, lines, "not the engine's: object-tokens 8")
		has(t, lines, "policy      "+policy)
		assert.False(t, exists(b.cache), "nothing is left behind")
	}
}

// A run with a tier policy reports what the policy moved and cost.
func TestTierPolicies(t *testing.T) {
	t.Parallel()
	trace := "-block-trace-path=" + data(t, "mooncake-small.jsonl")
	for policy, extra := range map[string][]string{
		"write-through": {"-evict=fifo"},
		"write-back":    {"-promote=on-hit", "-evict=s3-fifo"},
	} {
		b := newBench(t)
		b.ok(append(append(append(b.micro(), b.places()...), "-test.bench=BlockTrace", trace,
			"-trace-speedup=0", "-verify=full", "-tier-policy="+policy, "-cpu-mem-gb=0.002",
			"-test.benchtime=1h"), // the input's end ends it, and cuts nothing off
			extra...)...)
		res := theResult(t, b.results)
		p := res.Policy
		require.NotNil(t, p, policy)
		assert.Equal(t, policy, p.Tier)
		require.NotNil(t, p.DriveWritesPerDay)
		assert.Equal(t, policy == "write-through", p.Copied.Bytes+p.Unwritten.Bytes > 0, policy)
		storage := res.Tiers[len(res.Tiers)-1]
		if policy == "write-through" {
			assert.Equal(t, p.Copied.Bytes, storage.Write.Bytes, "all of it was copied")
		}
		require.NotNil(t, p.Compared, policy)
		assert.Equal(t, []int64{res.BlockCache.Blocks, res.BlockCache.Hits},
			[]int64{p.Compared.Lookups, p.Compared.Hits}, "the same decisions, counted twice")
	}
}

// Runs of conversations and documents, with the tokenizer in the result.
func TestConversationsAndDocuments(t *testing.T) {
	t.Parallel()
	for tokenizer, name := range map[string]string{"cl100k": "cl100k_base",
		"chars": "characters/4"} {
		b := newBench(t)
		b.ok(append(append(b.micro(), b.places()...), "-test.bench=ShareGPT",
			"-dataset-path="+data(t, "sharegpt-small.json"),
			"-tokenizer="+tokenizer)...)
		res := theResult(t, b.results)
		require.NotNil(t, res.Input)
		assert.Equal(t, name, res.Input.Tokenizer)
		assert.EqualValues(t, 6, res.Requests.Completed)
		assert.EqualValues(t, 6, res.Lookups.ByKind["multi_turn"].Hits,
			"a conversation of four turns reads its history")
	}
	b := newBench(t)
	b.ok(append(append(b.micro(), b.places()...), "-test.bench=RAG", "-rag-num-docs=2",
		"-test.benchtime=200x")...)
	res := theResult(t, b.results)
	assert.Positive(t, res.Lookups.ByKind["rag"].Hits)
}
