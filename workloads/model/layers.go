package model

import (
	"cmp"
	"math"
)

// Group is layers of a model that keep the same of a token. What a field leaves out, 0, is as the
// model's.
type Group struct {
	Layers  int
	KVHeads int
	HeadDim int // of a key and, where the model has no length of its own for values, of a value
	// ValueDim is the length of a value, where it is not the model's.
	ValueDim int
	Window   int // tokens: only the last so many are ever looked at
	Every    int // tokens that share one entry: compressed attention
}

// indexer is what finds the tokens that sparse attention looks at: a key for each token in some of
// the layers.
type indexer struct {
	layers int
	dim    int
	every  int // tokens that share one key
	// Keys that stay in bfloat16 whatever the type of the others is, and those whose engines know
	// no other type for anything.
	bf16, alone bool
}

// dtypes maps the types of cached numbers, in the spellings of configuration files, to their sizes.
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

// dtype is the size of a cached number, scales included
// (vllm/v1/kv_cache_interface.py, 2026): of fp8 one scale serves a whole tensor and is not stored;
// int8 and int4 have one of four bytes for each token, head, and key or value; nvfp4 has one byte
// for sixteen numbers. fp8_ds_mla is the latent in fp8 with a scale of four bytes for 128 numbers,
// next to a rotary part in bfloat16 (FlashMLA: 656 = 512 + 16 + 128 bytes).
type dtype struct {
	bytes  float64 // of a number
	scales float64 // bytes for each key and value of a head
	shared float64 // bytes of scales for a number
	// Which kinds of attention are stored so: heads alone, latents alone; neither means both.
	heads, latents bool
}

// entry is the bytes of one entry of a layer of the group.
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
			// Seven scales for 448 numbers of DeepSeek-V4, and one to fill: 584 bytes.
			return dim - rope + 2*rope + math.Ceil((dim-rope)/64) + 1
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

// groups are the layers that keep something of every token.
func (m Model) groups() []Group {
	if m.Groups == nil {
		return []Group{{Layers: m.Layers}}
	}
	return m.Groups
}

// Alike says that every layer leaves as much of a token as any other, whatever it looks at later:
// none has states, and none an indexer.
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

// perToken is what one token leaves in a group, in the caches of all ranks together.
func (m Model) perToken(g Group) float64 {
	return float64(g.Layers) * m.entry(g) / float64(max(1, g.Every))
}

// indexBytes is what one token leaves in the indexers: in bfloat16, or in fp8 with a scale.
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

// FixedBytes is what a long sequence keeps on all ranks besides what BytesPerToken counts, however
// long it is: states, and with compressed attention the last tokens as they are. Entries of a load
// do not have it.
func (m Model) FixedBytes() int64 {
	sum := float64(m.StateBytes)
	if m.Attention == CSA {
		sum += float64(m.Layers) * float64(m.csaWindow) * m.entry(Group{})
	}
	return int64(math.Ceil(sum))
}
