package model

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// types returns a config.json's list of layers from names and the number of layers with each name.
func types(counted ...any) string {
	var list []any
	for i := 0; i < len(counted); i += 2 {
		for range counted[i+1].(int) {
			list = append(list, counted[i])
		}
	}
	text, _ := json.Marshal(list)
	return string(text)
}

// published are configurations with only the fields that decide the size of a cache. None
// was compared with the file itself, which is at https://huggingface.co/<name>/raw/main/config.json.
// [nixl]: ai-dynamo/nixl, benchmark/kvbench/examples/model_*.yaml; [apron]: mondegreens/apron
// @b2f4b6c6, tests of src/apron/domain/mechanisms/layered.py; [tests]: copies of config.json in the
// tests of vllm-project/vllm and sgl-project/sglang.
var published = map[string]string{
	"meta-llama/Llama-3.1-8B": `{"num_hidden_layers": 32, "hidden_size": 4096,
		"num_attention_heads": 32, "num_key_value_heads": 8, "torch_dtype": "bfloat16"}`, // [nixl]
	"meta-llama/Llama-3.1-70B": `{"num_hidden_layers": 80, "hidden_size": 8192,
		"num_attention_heads": 64, "num_key_value_heads": 8, "torch_dtype": "bfloat16"}`, // [nixl]
	"Qwen/Qwen3-8B": `{"num_hidden_layers": 36, "hidden_size": 4096, "num_attention_heads": 32,
		"num_key_value_heads": 8, "head_dim": 128, "sliding_window": null,
		"use_sliding_window": false}`, // [nixl]
	"Qwen/Qwen3-235B-A22B": `{"num_hidden_layers": 94, "hidden_size": 4096,
		"num_attention_heads": 64, "num_key_value_heads": 4, "head_dim": 128}`, // [nixl]
	"zai-org/GLM-4.5-Air": `{"num_hidden_layers": 46, "hidden_size": 4096,
		"num_attention_heads": 96, "num_key_value_heads": 8, "head_dim": 128}`, // [tests]
	"MiniMaxAI/MiniMax-M2": `{"num_hidden_layers": 62, "hidden_size": 3072,
		"num_attention_heads": 48, "num_key_value_heads": 8, "head_dim": 128}`, // [tests]
	"deepseek-ai/DeepSeek-V3": `{"num_hidden_layers": 61, "hidden_size": 7168, "v_head_dim": 128,
		"num_attention_heads": 128, "num_key_value_heads": 128, "kv_lora_rank": 512,
		"qk_rope_head_dim": 64}`, // [nixl], as DeepSeek-R1, of the same form
	"deepseek-ai/DeepSeek-V3.2": `{"num_hidden_layers": 61, "num_attention_heads": 128,
		"kv_lora_rank": 512, "qk_rope_head_dim": 64, "index_head_dim": 128, "index_n_heads": 64,
		"index_topk": 2048}`, // [tests]
	"zai-org/GLM-5.2": `{"num_hidden_layers": 78, "kv_lora_rank": 512, "qk_rope_head_dim": 64,
		"index_head_dim": 128, "indexer_types": ` + types("full", 21, "shared", 57) + `}`, // [tests]
	"deepseek-ai/DeepSeek-V4-Pro": `{"num_hidden_layers": 61, "num_attention_heads": 128,
		"num_key_value_heads": 1, "head_dim": 512, "qk_rope_head_dim": 64, "sliding_window": 128,
		"index_head_dim": 128, "compress_ratios": ` + types(128, 31, 4, 30, 0, 1) + `}`, // [tests]
	"deepseek-ai/DeepSeek-V4-Flash": `{"num_hidden_layers": 43, "num_attention_heads": 64,
		"num_key_value_heads": 1, "head_dim": 512, "qk_rope_head_dim": 64, "sliding_window": 128,
		"index_head_dim": 128, "compress_ratios": ` + types(0, 2, 4, 21, 128, 20, 0, 1) + `}`, // [tests]
	"openai/gpt-oss-120b": `{"num_hidden_layers": 36, "hidden_size": 2880,
		"num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 64, "sliding_window": 128,
		"layer_types": ` + types("sliding_attention", 18, "full_attention", 18) + `}`, // [nixl]
	"google/gemma-4-31b": `{"text_config": {"num_hidden_layers": 60, "hidden_size": 5376,
		"num_attention_heads": 32, "num_key_value_heads": 16, "head_dim": 256,
		"num_global_key_value_heads": 4, "global_head_dim": 512, "sliding_window": 1024,
		"attention_k_eq_v": true,
		"layer_types": ` + types("sliding_attention", 50, "full_attention", 10) + `}}`, // [apron]
	"Qwen/Qwen3-Next-80B-A3B": `{"num_hidden_layers": 48, "hidden_size": 2048,
		"num_attention_heads": 16, "num_key_value_heads": 2, "head_dim": 256,
		"full_attention_interval": 4, "linear_num_key_heads": 16, "linear_key_head_dim": 128,
		"linear_num_value_heads": 32, "linear_value_head_dim": 128, "linear_conv_kernel_dim": 4,
		"dtype": "bfloat16"}`, // [tests]
	"Qwen/Qwen3.5-35B-A3B": `{"text_config": {"num_hidden_layers": 40, "hidden_size": 2048,
		"num_attention_heads": 16, "num_key_value_heads": 2, "head_dim": 256,
		"full_attention_interval": 4, "linear_num_key_heads": 16, "linear_key_head_dim": 128,
		"linear_num_value_heads": 32, "linear_value_head_dim": 128, "linear_conv_kernel_dim": 4,
		"mamba_ssm_dtype": "float32", "dtype": "bfloat16"}}`, // [apron], as Qwen3.6-35B-A3B, of the same form
	"Qwen/Qwen3.8-27B": `{"text_config": {"num_hidden_layers": 64, "hidden_size": 5120,
		"num_attention_heads": 24, "num_key_value_heads": 4, "head_dim": 256,
		"linear_num_key_heads": 16, "linear_key_head_dim": 128, "linear_num_value_heads": 48,
		"linear_value_head_dim": 128, "linear_conv_kernel_dim": 4, "mamba_ssm_dtype": "float32",
		"layer_types": ` + types("linear_attention", 48, "full_attention", 16) + `}}`, // [apron]
	"nvidia/Nemotron-3-Nano-30B": `{"num_hidden_layers": 52, "hidden_size": 2688,
		"num_attention_heads": 32, "num_key_value_heads": 2, "head_dim": 128,
		"hybrid_override_pattern": "MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME",
		"mamba_num_heads": 64, "mamba_head_dim": 64, "ssm_state_size": 128, "n_groups": 8,
		"conv_kernel": 4, "mamba_ssm_cache_dtype": "float32"}`, // [apron]
}

// parse reads a configuration and stores its numbers in their own type.
func parse(text string) (Model, error) {
	m, err := parseModelConfig([]byte(text), nil)
	if err != nil {
		return m, err
	}
	return m.In(OwnType)
}

// config reads a published configuration with a type of cached numbers, "" for its own type.
func config(t *testing.T, name, dtype string) Model {
	t.Helper()
	require.Contains(t, published, name)
	m, err := parse(published[name])
	require.NoError(t, err, name)
	if dtype != "" {
		m.DType = dtype
		require.NoError(t, m.Validate(), name)
	}
	return m
}

// The bytes of a token by config.json and type, as published and as computed by the rules of vLLM's
// kv_cache_interface.py: the bytes stored block by block, and the tokens of a block whose page must be as
// large as a state.
func TestBytesPerTokenOfPublishedModels(t *testing.T) {
	reckoned := make(map[string]bool)
	for _, c := range []struct {
		name, dtype string
		bytes       int64
		state       int64
		block       int
	}{
		{"meta-llama/Llama-3.1-8B", "", 131072, 0, 0},
		{"meta-llama/Llama-3.1-8B", "fp8", 65536, 0, 0},
		{"meta-llama/Llama-3.1-8B", "int8", 65536 + 32*2*8*4, 0, 0},
		{"meta-llama/Llama-3.1-8B", "int4", 32768 + 32*2*8*4, 0, 0},
		{"meta-llama/Llama-3.1-8B", "nvfp4", 32 * 2 * 8 * (64 + 8), 0, 0},
		{"meta-llama/Llama-3.1-70B", "", 327680, 0, 0},
		{"Qwen/Qwen3-8B", "", 147456, 0, 0},
		{"Qwen/Qwen3-8B", "fp8", 73728, 0, 0},
		{"Qwen/Qwen3-235B-A22B", "", 192512, 0, 0},
		{"zai-org/GLM-4.5-Air", "", 188416, 0, 0},
		{"MiniMaxAI/MiniMax-M2", "", 253952, 0, 0},
		{"deepseek-ai/DeepSeek-V3", "", 70272, 0, 0},
		{"deepseek-ai/DeepSeek-V3", "fp8", 35136, 0, 0},
		{"deepseek-ai/DeepSeek-V3", "fp8_ds_mla", 61 * 656, 0, 0},
		{"deepseek-ai/DeepSeek-V3.2", "", 85888, 0, 0},
		{"deepseek-ai/DeepSeek-V3.2", "fp8", 48068, 0, 0},
		{"zai-org/GLM-5.2", "", 95232, 0, 0},
		{"zai-org/GLM-5.2", "fp8", 53940, 0, 0},
		{"deepseek-ai/DeepSeek-V4-Pro", "", 9848, 0, 0},
		{"deepseek-ai/DeepSeek-V4-Pro", "fp8", 5512, 0, 0}, // 5,511.4
		{"deepseek-ai/DeepSeek-V4-Flash", "", 6880, 0, 0},
		{"deepseek-ai/DeepSeek-V4-Flash", "fp8", 3851, 0, 0}, // 3,850.25
		{"openai/gpt-oss-120b", "", 73728, 0, 0},
		{"google/gemma-4-31b", "", 81920 + 819200, 0, 0},
		{"Qwen/Qwen3-Next-80B-A3B", "", 24576, 39_518_208, 544},
		{"Qwen/Qwen3.5-35B-A3B", "", 20480, 64_389_120, 1056},
		{"Qwen/Qwen3.8-27B", "", 65536, 153_944_064, 784},
		{"nvidia/Nemotron-3-Nano-30B", "", 6144, 49_082_368, 2096},
	} {
		reckoned[c.name] = true
		m := config(t, c.name, c.dtype)
		assert.Equal(t, c.bytes, m.BytesPerToken(), "%s %s", c.name, c.dtype)
		assert.Equal(t, c.state, m.StateBytes, "%s", c.name)
		if c.block > 0 {
			assert.Equal(t, c.block, m.Paging(1).Block, "%s", c.name)
		}
	}
	for name := range published {
		assert.True(t, reckoned[name], "%s has no row above", name)
	}
	assert.Len(t, reckoned, 17)
}

// The bytes that loads do not count and messages report: 8.0 and 4.6 MB for DeepSeek-V4, as published.
func TestFixedBytes(t *testing.T) {
	assert.Zero(t, config(t, "openai/gpt-oss-120b", "").FixedBytes())
	assert.EqualValues(t, 39_518_208, config(t, "Qwen/Qwen3-Next-80B-A3B", "").FixedBytes())
	assert.EqualValues(t, 7_995_392, config(t, "deepseek-ai/DeepSeek-V4-Pro", "").FixedBytes())
	assert.EqualValues(t, 4_559_872, config(t, "deepseek-ai/DeepSeek-V4-Pro", "fp8").FixedBytes())
}

// vLLM's pages for a sequence, as reported by v0.29: pages of one size for tokens, and for two states of
// each other layer. There are as many groups of those layers as attention has layers in a group.
func TestUnifiedPagesAreThoseOfTheEngine(t *testing.T) {
	for name, want := range map[string]int64{"Qwen/Qwen3.8-27B": 17_520_656_384,
		"Qwen/Qwen3.5-35B-A3B": 5_514_854_400, "nvidia/Nemotron-3-Nano-30B": 1_725_628_416} {
		m := config(t, name, "")
		block, full := m.Paging(1).Block, m.Groups[0].Layers
		page := m.BytesPerToken() / int64(full) * int64(block)
		blocks := (262_144 + block - 1) / block
		padded := (m.stateLayers + full - 1) / full * full
		assert.Equal(t, want, page*int64(blocks*full+2*padded), name)
	}
}

// One of several ranks keeps its share of the heads of each group.
func TestRanksOfGroups(t *testing.T) {
	gemma := config(t, "google/gemma-4-31b", "")
	assert.EqualValues(t, (81920+819200)/4, NewSizer(gemma, 4, TPEngine).Bytes(1))
	assert.EqualValues(t, 81920/4+819200/8, NewSizer(gemma, 8, TPEngine).Bytes(1),
		"four heads cannot be split over eight ranks")
	assert.EqualValues(t, (81920+819200)/8, NewSizer(gemma, 8, TPMLPerf).Bytes(1))
	// For MiniMax-M3 one of four ranks has one of four heads, and all keys of the indexers.
	m3, err := parse(`{"num_hidden_layers": 60, "num_attention_heads": 64, "head_dim": 128,
		"num_key_value_heads": 4, "sparse_attention_config": {"use_sparse_attention": true,
		"sparse_index_dim": 128, "sparse_attention_freq": ` + types(0, 3, 1, 57) + `,
		"sparse_disable_index_value": ` + types(0, 3, 1, 57) + `}}`)
	require.NoError(t, err)
	assert.EqualValues(t, 60*2*128*2+57*128*2, NewSizer(m3, 4, TPEngine).Bytes(1))
	v4 := config(t, "deepseek-ai/DeepSeek-V4-Pro", "")
	assert.EqualValues(t, 9848, NewSizer(v4, 8, TPEngine).Bytes(1), "every rank has all of it")
}
