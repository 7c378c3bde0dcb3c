package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench/result"
	"kvbench/tiers"
)

// point is the only result of a point of a sweep, and its summary.
func (b *bench) point(name, key string) (*result.Result, string) {
	b.t.Helper()
	dir := filepath.Join(b.results, name+"_"+key)
	summary, err := os.ReadFile(filepath.Join(dir, "trial_0/rank_0/summary.txt"))
	require.NoError(b.t, err)
	return theResult(b.t, dir), string(summary)
}

// A block trace is replayed in each layout: in files of ours, all hits the same, or as each engine
// would keep it, in its objects, past the page cache or not. Nothing of it is left behind.
func TestLayouts(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	names := []string{"entry", "packed=3"}
	for _, l := range tiers.EngineLayouts {
		names = append(names, l.Name)
	}
	trace := append(append(b.micro(), b.places()...), "-test.bench=BlockTrace",
		"-block-trace-path="+data(t, "mooncake-small.jsonl"), "-trace-speedup=0")
	b.ok(append(trace, "-sweep=layout="+strings.Join(names, ","), "-verify=full",
		"-test.benchtime=1h")...) // the input's end ends it, however slow the machine is
	assert.False(t, exists(b.cache), "nothing is left behind")
	for _, name := range names[:2] {
		res, _ := b.point("BlockTrace", "layout="+name)
		require.NotNil(t, res.BlockCache, name)
		assert.EqualValues(t, []int64{258, 92}, []int64{res.BlockCache.Blocks, res.BlockCache.Hits})
		require.NotNil(t, res.TraceFiles)
		assert.Equal(t, res.TraceFiles.Bytes, res.TraceFiles.HashedBytes, "the whole recording")
		assert.Equal(t, name == "packed=3",
			res.BlockCache.Reads.Operations < res.BlockCache.Reads.Blocks, name)
	}
	for _, l := range tiers.EngineLayouts {
		res, _ := b.point("BlockTrace", "layout="+l.Name)
		require.NotNil(t, res.BlockCache, l.Name)
		per := int64(512 / l.Tokens)
		assert.GreaterOrEqual(t, res.BlockCache.Hits, 80*per, l.Name)
		assert.Equal(t, *res.BlockCache.IdealHitRatio, *res.BlockCache.HitRatio)
		assert.Equal(t, l.Depth > 1, res.BlockCache.Reads.Operations < res.BlockCache.Reads.Blocks)
		assert.Equal(t, map[bool]string{true: "direct", false: "buffered"}[l.Direct], res.IO.Mode)
		assert.Equal(t, l.LooksUp, res.Requests.Time.Lookup > 0, l.Name)
		// What stays in memory, until it fills a bucket, is no load of the storage.
		storage := res.Tiers[len(res.Tiers)-1]
		assert.Equal(t, l.Buckets, storage.Write.Bytes+storage.Read.Bytes == 0, l.Name)
		assert.Equal(t, storage.Read.EntryBytes, storage.Read.Bytes+storage.Read.MemoryBytes)
	}
	// Preconditioning writes entries that fit into the slots.
	b.ok(append(trace, "-layout=slots", "-precondition", "-precondition-size-gb=0.3")...)
}

// The I/O of all tensor-parallel ranks: the bytes of each, in files of their own or in one file.
func TestTensorParallelRanks(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.ok(slices.Concat(b.micro(), b.places(), []string{"-test.bench=MultiTurn", "-num-gpus=4",
		"-tensor-parallel=4", "-sweep=layout=lmcache-fs,vllm-fs", "-sweep=object-tokens=8",
		"-sweep=tp-io=all", "-max-requests=20", "-verify=full"})...)
	assert.False(t, exists(b.cache), "nothing is left behind")
	for _, layout := range []string{"lmcache-fs", "vllm-fs"} {
		res, summary := b.point("MultiTurn", "layout="+layout+"_object-tokens=8_tp-io=all")
		blocks := res.BlockCache
		require.NotNil(t, blocks, layout)
		assert.Equal(t, blocks.Tokens, blocks.Blocks*8)
		assert.Nil(t, blocks.IdealHitRatio)
		const token = 4096 // of micro
		assert.EqualValues(t, 4, res.Model.StoringRanks, layout)
		assert.EqualValues(t, token/4, res.Model.RankBytesPerToken, layout)
		storage := res.Tiers[len(res.Tiers)-1]
		assert.Equal(t, blocks.Writes.Blocks*8*token, storage.Write.Bytes, layout)
		assert.Equal(t, blocks.Reads.Blocks*8*token, storage.Read.Bytes, layout)
		assert.Positive(t, storage.Read.Bytes, layout)
		assert.Contains(t, summary, "1 KiB per token on each of 4 ranks, which all store, "+
			"tensor parallel 4")
	}
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
