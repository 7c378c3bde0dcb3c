package model

import (
	"cmp"
	"math"
)

// Group describes layers of a model that keep the same bytes per token. A field of 0 means the model's
// value.
type Group struct {
	Layers  int
	KVHeads int
	HeadDim int // length of a key, and of a value if the model has no other length for values
	// ValueDim is the length of a value.
	ValueDim int
	Window   int // attention reads only this many of the last tokens
	Every    int // compressed attention: the number of tokens that share one entry
}

// indexer describes what finds the tokens that sparse attention reads: an index that keeps one key for
// each token in some layers.
type indexer struct {
	layers int
	dim    int
	every  int // tokens that share one key
	// bf16: keys stay in bfloat16 for every type of the other numbers. alone: engines have no other
	// type for the model at all.
	bf16, alone bool
}

// dtypes maps the types of cached numbers, as configuration files spell them, to their sizes.
var dtypes = map[string]dtype{
	"float32": {bytes: 4}, "fp32": {bytes: 4},
	"float16": {bytes: 2}, "fp16": {bytes: 2}, "half": {bytes: 2}, "bfloat16": {bytes: 2},
	"bf16": {bytes: 2},
	"fp8":  {bytes: 1}, "float8": {bytes: 1}, "float8_e4m3fn": {bytes: 1},
	"float8_e5m2": {bytes: 1}, "fp8_ds_mla": {bytes: 1, latents: true},
	"int8":  {bytes: 1, scales: 4, heads: true},
	"int4":  {bytes: 0.5, scales: 4, heads: true},
	"nvfp4": {bytes: 0.5, shared: 1. / 16, heads: true},
}

// dtype is the size of a cached number, scales included (vllm/v1/kv_cache_interface.py, 2026). fp8
// has one scale per tensor, which is not stored. int8 and int4 have a scale of four bytes for each
// token, head, and key or value. nvfp4 has a scale of one byte for sixteen numbers. fp8_ds_mla is a
// latent in fp8 with a scale of four bytes for 128 numbers, and a rotary part in bfloat16 (FlashMLA:
// 656 = 512 + 16 + 128 bytes).
type dtype struct {
	bytes  float64 // of a number
	scales float64 // bytes for each key and value of a head
	shared float64 // bytes of scales for a number
	// heads: only attention with heads has this type. latents: only latents have it. If both are false,
	// both have it.
	heads, latents bool
}

// entry returns the bytes of one entry in a layer of the group.
func (m Model) entry(g Group) float64 {
	t := dtypes[m.dtype()]
	switch m.Attention {
	case MLA:
		if t.latents || t.bytes == 1 && m.index.layers > 0 { // sparse kernels know no other fp8
			return float64(m.KVLoraRank)*(1+4./128) + 2*float64(m.QKRopeHeadDim)
		}
		return t.bytes * float64(m.KVLoraRank+m.QKRopeHeadDim)
	case CSA:
		dim, rope := float64(m.HeadDim), float64(m.QKRopeHeadDim)
		if t.bytes == 1 {
			// DeepSeek-V4: seven scales for 448 numbers and one byte of padding, 584 bytes.
			return dim - rope + 2*rope + math.Ceil((dim-rope)/64) + 1
		}
		if g.Every > 0 { // not of a layer's last tokens
			dim += float64(m.ownerIndex)
		}
		return t.bytes * dim
	}
	heads := float64(cmp.Or(g.KVHeads, m.KVHeads))
	key := float64(cmp.Or(g.HeadDim, m.headDim()))
	value := float64(cmp.Or(g.ValueDim, m.ValueDim))
	if value == 0 {
		value = key
	}
	return heads * ((key+value)*(t.bytes+t.shared) + 2*t.scales)
}

// groups returns the groups of layers that keep something of every token.
func (m Model) groups() []Group {
	if m.Groups == nil {
		return []Group{{Layers: m.Layers}}
	}
	return m.Groups
}

// Alike reports whether every layer keeps the same bytes per token: no layer has a state or an indexer.
// Windows make no difference.
func (m Model) Alike() bool {
	layers, groups := 0, m.groups()
	for _, g := range groups {
		if g.Every != groups[0].Every || m.entry(g) != m.entry(groups[0]) {
			return false
		}
		layers += g.Layers
	}
	return layers == m.Layers && m.index.layers == 0
}

// perToken returns the bytes of one token in a group, summed over the caches of all ranks.
func (m Model) perToken(g Group) float64 {
	return float64(g.Layers) * m.entry(g) / float64(max(1, g.Every))
}

// indexBytes returns the bytes of one token in the indexers: in bfloat16, or in fp8 with a scale.
func (m Model) indexBytes() float64 {
	if m.index.layers == 0 {
		return 0
	}
	key := float64(m.index.dim) * max(2, dtypes[m.dtype()].bytes)
	if dtypes[m.dtype()].bytes < 2 && !m.index.bf16 {
		key = float64(m.index.dim) + 4
	}
	return float64(m.index.layers) * key / float64(max(1, m.index.every))
}

// FixedBytes returns the bytes that a long sequence keeps on all ranks besides BytesPerToken,
// independent of its length: states, and with compressed attention the last tokens uncompressed.
// Entries of a load do not include these bytes.
func (m Model) FixedBytes() int64 {
	sum := float64(m.StateBytes)
	if m.Attention == CSA {
		sum += float64(m.Layers) * float64(m.csaWindow) * m.entry(Group{})
	}
	return int64(math.Ceil(sum))
}
