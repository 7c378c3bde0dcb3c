package model

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Groups and the bytes of their objects as published for vLLM's offloading: Qwen3.8 has 4 of
// 51,380,224 bytes for 784 tokens, Gemma 4 6 of 2,621,440 for 16, gpt-oss 2 of 589,824 for 16.
// The numbers of the other models are computed by the same rules.
func TestPaging(t *testing.T) {
	for _, c := range []struct {
		name          string
		block, layers int
		object        int64 // bytes of a group and block
		tails         []int // of how many last blocks each group is needed
	}{
		{"Qwen/Qwen3.8-27B", 784, 16, 51_380_224, []int{0, 1, 1, 1}},
		{"google/gemma-4-31b", 16, 10, 2_621_440, []int{0, 64, 64, 64, 64, 64}},
		{"openai/gpt-oss-120b", 16, 18, 589_824, []int{0, 8}},
		{"Qwen/Qwen3-Next-80B-A3B", 544, 12, 544 * 12 * 2048, []int{0, 1, 1, 1}},
		{"Qwen/Qwen3.5-35B-A3B", 1056, 10, 1056 * 10 * 2048, []int{0, 1, 1, 1}},
		// 23 layers with a state make 4 groups of 6, one of them padded.
		{"nvidia/Nemotron-3-Nano-30B", 2096, 6, 2096 * 6 * 1024, []int{0, 1, 1, 1, 1}},
	} {
		p := config(t, c.name, "").Paging(1)
		if !assert.NotNil(t, p, c.name) {
			continue
		}
		assert.Equal(t, c.block, p.Block, c.name)
		assert.Equal(t, c.layers, p.Layers, c.name)
		assert.Equal(t, c.tails, p.Tails(p.Block), c.name)
		assert.Equal(t, c.object*int64(len(c.tails)), p.BytesPerToken()*int64(p.Block), c.name)
	}
	for _, name := range []string{"meta-llama/Llama-3.1-8B", "deepseek-ai/DeepSeek-V3",
		"deepseek-ai/DeepSeek-V3.2", "deepseek-ai/DeepSeek-V4-Pro"} {
		assert.Nil(t, config(t, name, "").Paging(1), name)
	}
	// Objects of 32 blocks: a window of 128 lies in the last of them.
	assert.Equal(t, []int{0, 1}, config(t, "openai/gpt-oss-120b", "").Paging(1).Tails(512))
	// Each of four ranks would have half a head, so it has a whole one; its states are a quarter.
	next := config(t, "Qwen/Qwen3-Next-80B-A3B", "").Paging(4)
	assert.EqualValues(t, 1024, next.Page)
	assert.Equal(t, 272, next.Block)
	// Each of eight ranks has 2 heads of 256 numbers in Gemma's windows, and one of 512.
	assert.EqualValues(t, 2048, config(t, "google/gemma-4-31b", "").Paging(8).Page)
	// With fp8 a token takes half as many bytes: a page as large as a state has twice as many tokens.
	assert.Equal(t, 1072, config(t, "Qwen/Qwen3-Next-80B-A3B", "fp8").Paging(1).Block)
}

// Kernels for latents have blocks of 128 tokens. LMCache's chunks of 3,072 tokens for Kimi-K3 on eight
// ranks are a multiple. Each rank has whole latents and an eighth of the states.
func TestPagingOfLatents(t *testing.T) {
	m, err := parse(`{"num_hidden_layers": 93, "num_attention_heads": 96, "hidden_size": 7168,
		"num_key_value_heads": 96, "kv_lora_rank": 512, "qk_rope_head_dim": 64,
		"linear_attn_config": {"num_heads": 96, "head_dim": 128, "short_conv_kernel_size": 4,
		"full_attn_layers": ` + types(4, 24) + `, "kda_layers": ` + types(1, 69) + `}}`)
	require.NoError(t, err)
	p := m.Paging(8)
	assert.EqualValues(t, 1152, p.Page)
	assert.Equal(t, 768, p.Block)
}

// Two kinds with almost equal numbers of layers have one group each, with padding.
func TestPagingOfAlmostAlikeKinds(t *testing.T) {
	m := Model{Layers: 25, KVHeads: 1, HeadDim: 4,
		Groups: []Group{{Layers: 13}, {Layers: 12, Window: 100}}}
	p := m.Paging(1)
	assert.Equal(t, 13, p.Layers)
	assert.Equal(t, []int{0, 99}, p.Last)
	m.Groups = []Group{{Layers: 20}, {Layers: 30, Window: 100}}
	assert.Equal(t, 20, m.Paging(1).Layers)
	assert.Len(t, m.Paging(1).Last, 3)
}
