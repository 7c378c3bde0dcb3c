package params

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench/result"
	"kvbench/tiers"
)

// An engine sets what it does; what somebody says wins, and what hangs on that follows it.
func TestEngines(t *testing.T) {
	names := []string{"layout", "object-tokens", "io", "tier-policy", "promote", "write-behind-gb",
		"evict"}
	texts := func(v *Values) (list []string) {
		for _, n := range names {
			list = append(list, v.Text(n))
		}
		return list
	}
	for _, c := range []struct {
		args []string
		want []string
	}{
		{[]string{"-engine=vllm"},
			[]string{"vllm-fs", "16", "direct", "waterfall", "never", "0", "lru"}},
		{[]string{"-engine=vllm", "-cpu-mem-gb=2"},
			[]string{"vllm-fs", "16", "direct", "write-through", "on-hit", "2", "lru"}},
		{[]string{"-engine=lmcache", "-cpu-mem-gb=2"},
			[]string{"lmcache-fs", "256", "buffered", "write-through", "never", "2", "lru"}},
		{[]string{"-engine=sglang", "-gpu-mem-gb=2"},
			[]string{"hicache-file", "64", "buffered", "write-through", "on-hit", "0", "lru"}},
		{[]string{"-engine=mooncake", "-cpu-mem-gb=2"},
			[]string{"mooncake-bucket", "512", "buffered", "write-through", "never", "2", "bucket"}},
		{[]string{"-engine=dynamo", "-cpu-mem-gb=2"},
			[]string{"kvbm-slots", "16", "direct", "selective", "never", "2", "lru"}},
		{[]string{"-engine=vllm", "-cpu-mem-gb=2", "-tier-policy=waterfall"},
			[]string{"vllm-fs", "16", "direct", "waterfall", "never", "0", "lru"}},
		{[]string{"-engine=vllm", "-cpu-mem-gb=2", "-tier-policy=write-back"},
			[]string{"vllm-fs", "16", "direct", "write-back", "on-hit", "0", "lru"}},
		{[]string{"-engine=lmcache", "-layout=lmcache-raw", "-object-tokens=64", "-evict=lfu"},
			[]string{"lmcache-raw", "64", "direct", "waterfall", "never", "0", "lfu"}},
		{[]string{"-engine=lmcache", "-layout=entry"},
			[]string{"entry", "auto", "direct", "waterfall", "never", "0", "lru"}},
	} {
		v := good(t, Inputs{Bench: bench(t, "Synthetic")}, c.args...)
		assert.Equal(t, c.want, texts(v), "%v", c.args)
	}
	v := good(t, Inputs{Bench: bench(t, "Synthetic")}, "-engine=dynamo", "-cpu-mem-gb=2")
	assert.Equal(t, "engine dynamo", v.Origin("layout").String())
	assert.Equal(t, "layout kvbm-slots", v.Origin("io").String())
	assert.Equal(t, "engine dynamo", v.Origin("tier-policy").String())
	assert.Equal(t, 2, v.Admission())
	assert.Equal(t, 64, v.Depth(), "what its transfers have under way")
	assert.Equal(t, []int{64, 64}, []int{v.ReadThreads, v.WriteThreads})
	assert.Empty(t, v.PolicyWithoutMemory())
	v = good(t, Inputs{Bench: bench(t, "Synthetic")}, "-engine=vllm", "-io-depth=8",
		"-read-threads=0")
	assert.Equal(t, 8, v.Depth())
	assert.Equal(t, []int{0, 16}, []int{v.ReadThreads, v.WriteThreads})
	assert.Equal(t, "write-through", v.PolicyWithoutMemory())
	v = good(t, Inputs{Bench: bench(t, "Synthetic")}, "-engine=vllm", "-tier-policy=waterfall")
	assert.Empty(t, v.PolicyWithoutMemory(), "somebody wanted it so")
	bad := wrong(t, Inputs{Bench: bench(t, "Synthetic")}, "-write-threads=4")
	assert.Contains(t, bad[0], "-write-threads: must be auto but with an engine's layout in files")

	bucket := []string{"-division=open", "-cache-dir=s3://bench/x", "-storage-capacity-gb=9"}
	v = good(t, Inputs{Bench: bench(t, "Synthetic")}, append(bucket, "-engine=vllm")...)
	assert.Equal(t, []string{"block", "vllm", "head", "16", "4"}, []string{v.Text("layout"),
		v.Text("s3-keys"), v.Text("s3-lookup"), v.Text("object-tokens"), v.Text("s3-requests")})
	assert.Equal(t, 16, v.CutTokens())
	v = good(t, Inputs{Bench: bench(t, "Synthetic")}, append(bucket, "-engine=lmcache")...)
	assert.Equal(t, 64, v.S3.Requests)
	v = good(t, Inputs{Bench: bench(t, "Synthetic")}, bucket...)
	assert.Zero(t, v.S3.Requests)
	bad = wrong(t, Inputs{Bench: bench(t, "Synthetic")}, append(bucket, "-engine=sglang")...)
	assert.Contains(t, bad[0], "-engine: must be vllm or lmcache with -cache-dir s3://")
	assert.Len(t, bad, 1, "its object size is of no interest: %v", bad)
	bad = wrong(t, Inputs{Bench: bench(t, "MaxStorageStress")}, "-division=closed",
		"-engine=vllm")
	assert.Contains(t, bad[0], "-engine: must be none in the closed division")
	assert.Len(t, bad, 1, "nobody gave a layout: %v", bad)
	bad = wrong(t, Inputs{Bench: bench(t, "Synthetic")}, "-engine=vlm")
	assert.Contains(t, bad[0], `did you mean "vllm"?`)
}

// Engines says in its sweep what there is.
func TestEveryEngineIsRanked(t *testing.T) {
	b, is := Benchmark(result.BenchmarkEngines)
	require.True(t, is)
	want := "engine=" + strings.Join(engineNames()[1:], ",")
	assert.Equal(t, want, b.settings(Open)["sweep"])
	assert.Equal(t, want, b.settings(Quick)["sweep"])
}

// What tensor-parallel ranks keep together of an object, and in how many: the sizes that engines
// have (70B with 8 heads at 8 ranks; latents, of which each has all).
func TestTensorRanks(t *testing.T) {
	for _, c := range []struct {
		model, layout string
		tokens        string
		objects       int
		bytes         int64
	}{
		{"llama3.1-70b-instruct", "vllm-fs", "16", 1, 5_242_880},
		{"llama3.1-70b-instruct", "lmcache-fs", "256", 8, 8 * 10_485_760},
		{"llama3.1-70b-instruct", "hicache-file", "64", 8, 8 * 2_621_440},
		{"llama3.1-70b-instruct", "vllm-slots", "16", 8, 8 * 655_360},
		{"llama3.1-70b-instruct", "kvbm-slots", "16", 8, 8 * 655_360},
		{"deepseek-v3", "vllm-fs", "16", 1, 8_994_816},
		{"deepseek-v3", "lmcache-fs", "256", 1, 17_989_632},
		{"deepseek-v3", "hicache-file", "64", 1, 4_497_408},
		{"deepseek-v3", "vllm-slots", "64", 8, 8 * 4_497_408},
	} {
		args := []string{"-division=open", "-model=" + c.model, "-layout=" + c.layout,
			"-num-gpus=8", "-tensor-parallel=8", "-object-tokens=" + c.tokens}
		in := Inputs{Bench: bench(t, "Synthetic")}
		v := good(t, in, append(args, "-tp-io=all")...)
		assert.Equal(t, c.objects, v.RankObjects(), "%s %s", c.model, c.layout)
		assert.Equal(t, c.bytes, v.Sizer().Bytes(v.ObjectTokens), "%s %s", c.model, c.layout)
		one := good(t, in, args...)
		assert.Equal(t, 1, one.RankObjects())
		assert.Equal(t, v.Sizer().One(), one.Sizer())
	}
	in := Inputs{Bench: bench(t, "Synthetic")}
	bad := wrong(t, in, "-tp-io=all", "-num-gpus=128", "-tensor-parallel=128", "-tp-rule=mlperf",
		"-layout=lmcache-raw")
	require.Len(t, bad, 3)
	text := strings.Join(bad, "\n")
	assert.Contains(t, text, "-tp-io: must be one but with -layout vllm-fs, vllm-slots, lmcache-fs")
	assert.Contains(t, text, "-tp-io: must be one with -tp-rule mlperf")
	assert.Contains(t, text, "-tensor-parallel: must be at most 64 with -tp-io all")
}

// Layer by layer is an engine's setting, and everything that cannot be with it is told at once.
func TestLayerwise(t *testing.T) {
	in := Inputs{Bench: bench(t, "Synthetic")}
	assert.True(t, good(t, in, "-division=open", "-layerwise", "-engine=lmcache").Layerwise)
	bad := wrong(t, in, "-division=open", "-layerwise", "-layout=vllm-fs", "-cpu-mem-gb=1",
		"-num-gpus=8", "-tensor-parallel=8", "-tp-io=all", "-cache-dir=/a,/b",
		"-storage-capacity-gb=1")
	text := strings.Join(bad, "\n")
	for _, want := range []string{"-layerwise: must be false but with -layout lmcache-fs: ",
		"-layerwise: must be false with -gpu-mem-gb or -cpu-mem-gb",
		"-layerwise: must be false with -tp-io all"} {
		assert.Contains(t, text, want)
	}
	windows := filepath.Join(t.TempDir(), "config.json")
	require.NoError(t, os.WriteFile(windows, []byte(`{"num_hidden_layers": 2, "hidden_size": 64,
		"num_attention_heads": 2, "num_key_value_heads": 2, "sliding_window": 16,
		"global_head_dim": 64,
		"layer_types": ["sliding_attention", "full_attention"]}`), 0o600))
	assert.Contains(t, strings.Join(wrong(t, in, "-division=open", "-layerwise",
		"-layout=lmcache-fs", "-model="+windows), "\n"), "whose layers keep different things")
	closed := wrong(t, Inputs{Bench: bench(t, "MaxStorageStress")}, "-division=closed", "-layerwise")
	assert.Contains(t, strings.Join(closed, "\n"), "-layerwise: must be false in the closed division")
}

// An engine keeps a model whose layers do not all keep the same in blocks of its own size: as many
// tokens as a page for a state takes, and of each group of layers an object.
func TestHybridModels(t *testing.T) {
	dir := t.TempDir()
	states := filepath.Join(dir, "states.json") // of Qwen3-Next
	require.NoError(t, os.WriteFile(states, []byte(`{"num_hidden_layers": 48, "hidden_size": 2048,
		"num_attention_heads": 16, "num_key_value_heads": 2, "head_dim": 256,
		"full_attention_interval": 4, "linear_num_key_heads": 16, "linear_key_head_dim": 128,
		"linear_num_value_heads": 32, "linear_value_head_dim": 128, "linear_conv_kernel_dim": 4}`),
		0o600))
	in := Inputs{Bench: bench(t, "Synthetic")}
	const slot = 544 * 12 * 2048 // a group of 12 layers in vLLM's pages
	for _, c := range []struct {
		args   []string
		tokens int
		bytes  int64
		tails  tiers.Tails
	}{
		{[]string{"-engine=vllm", "-model=" + states}, 544, 4 * slot, tiers.Tails{0, 1, 1, 1}},
		{[]string{"-engine=vllm", "-model=" + states, "-object-tokens=1088"}, 1088, 8 * slot,
			tiers.Tails{0, 1, 1, 1}},
		{[]string{"-engine=vllm", "-model=" + states, "-num-gpus=2", "-tensor-parallel=2"}, 544,
			4 * slot / 2, tiers.Tails{0, 1, 1, 1}},
		{[]string{"-engine=vllm", "-model=" + states, "-num-gpus=2", "-tensor-parallel=2",
			"-tp-io=all"}, 544, 4 * slot, tiers.Tails{0, 1, 1, 1}},
		{[]string{"-engine=vllm", "-model=" + states, "-num-gpus=2", "-tensor-parallel=2",
			"-tp-rule=mlperf"}, 544, 4 * slot / 2, tiers.Tails{0, 1, 1, 1}},
		{[]string{"-engine=lmcache", "-model=" + states}, 544, 4 * slot, nil},
		{[]string{"-engine=sglang", "-model=" + states}, 64, 64 * 24576, nil},
		{[]string{"-engine=vllm", "-model=gpt-oss-120b"}, 16, 2 * 589_824, tiers.Tails{0, 8}},
		{[]string{"-engine=vllm", "-model=gpt-oss-120b", "-object-tokens=256"}, 256, 32 * 589_824,
			tiers.Tails{0, 1}},
		{[]string{"-engine=lmcache", "-model=gpt-oss-120b"}, 256, 18_874_368, nil},
		{[]string{"-engine=vllm", "-model=llama3.1-8b"}, 16, 2_097_152, nil},
	} {
		v := good(t, in, append(c.args, "-division=open")...)
		assert.Equal(t, c.tokens, v.CutTokens(), c.args)
		assert.Equal(t, c.bytes, v.Sizer().Bytes(v.ObjectTokens), c.args)
		assert.Equal(t, c.tails, v.Tails(), c.args)
	}
	bad := wrong(t, in, "-division=open", "-engine=vllm", "-model="+states, "-object-tokens=512")
	assert.Contains(t, strings.Join(bad, "\n"), "-object-tokens: must be a multiple of 544")
}
