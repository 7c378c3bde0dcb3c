package model

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
)

// Group is layers of a model that keep the same of a token. What a field leaves out, 0, is as the
// model's.
type Group struct {
	Layers  int
	KVHeads int
	HeadDim int // of a key and, where the model has no length of its own for values, of a value
	Window  int // tokens: only the last so many are ever looked at
	Every   int // tokens that share one entry: compressed attention
}

// indexer is what finds the tokens that sparse attention looks at: a key for each token in some of
// the layers.
type indexer struct {
	layers int
	dim    int
	every  int // tokens that share one key
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
// beside a rotary part in bfloat16 (FlashMLA: 656 = 512 + 16 + 128 bytes).
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
	value := key
	if m.ValueDim > 0 {
		value = float64(m.ValueDim)
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
	if dtypes[m.dtype()].bytes < 2 {
		key = float64(m.index.dim) + 4
	}
	return float64(m.index.layers) * key / float64(max(1, m.index.every))
}

// SequenceBytes is what a sequence of so many tokens needs to be continued: of layers with a window
// the last tokens alone, and the state of layers that keep one instead of tokens. It is less than
// BytesPerToken for each token, which counts what engines store block by block, and more where a
// state is large: one state is kept for each place from which a sequence is to be continued.
func (m Model) SequenceBytes(tokens int) int64 {
	total := m.fixed(tokens) + float64(tokens)*m.indexBytes()
	for _, g := range m.groups() {
		n := tokens
		if g.Window > 0 {
			n = min(n, g.Window)
		}
		total += float64(n) * m.perToken(g)
	}
	return int64(math.Ceil(total))
}

// FixedBytes is what a long sequence keeps besides what BytesPerToken counts, however long it is:
// states, and with compressed attention the last tokens as they are. Entries of a load do not have
// it.
func (m Model) FixedBytes() int64 { return int64(math.Ceil(m.fixed(m.csaWindow))) }

// fixed is what a sequence of so many tokens has of that, of all ranks together.
func (m Model) fixed(tokens int) float64 {
	sum := float64(m.StateBytes)
	if m.Attention == CSA {
		sum += float64(m.Layers) * float64(min(tokens, m.csaWindow)) * m.entry(Group{})
	}
	return sum
}

// layerFields are those of a config.json that say which layers keep what. Publishers tell the kinds
// of layers in one of five ways; kinds knows them.
type layerFields struct {
	Types      []string `json:"layer_types"`
	BlockTypes []string `json:"layers_block_type"`
	Pattern    string   `json:"hybrid_override_pattern"`
	Interval   int      `json:"full_attention_interval"`
	SharedKV   int      `json:"num_kv_shared_layers"` // the last ones, which use those before

	Sliding        int   `json:"sliding_window"`
	UseSliding     *bool `json:"use_sliding_window"`
	SlidingPattern int   `json:"sliding_window_pattern"` // every n-th is full
	Chunk          int   `json:"attention_chunk_size"`   // Llama 4: a token sees its chunk's
	GlobalHeads    int   `json:"num_global_key_value_heads"`
	GlobalDim      int   `json:"global_head_dim"`

	CompressRatios []int    `json:"compress_ratios"`
	IndexDim       int      `json:"index_head_dim"`
	IndexerTypes   []string `json:"indexer_types"`

	// Linear attention (Qwen3-Next) and Mamba-2 (Nemotron-H).
	LinearKeyHeads   int    `json:"linear_num_key_heads"`
	LinearKeyDim     int    `json:"linear_key_head_dim"`
	LinearValueHeads int    `json:"linear_num_value_heads"`
	LinearValueDim   int    `json:"linear_value_head_dim"`
	LinearConv       int    `json:"linear_conv_kernel_dim"`
	MambaHeads       int    `json:"mamba_num_heads"`
	MambaDim         int    `json:"mamba_head_dim"`
	MambaState       int    `json:"ssm_state_size"`
	MambaGroups      int    `json:"n_groups"`
	MambaConv        int    `json:"conv_kernel"`
	StateType        string `json:"mamba_ssm_dtype"`
	StateTypeToo     string `json:"mamba_ssm_cache_dtype"`

	// The same of Bamba and Granite 4.
	BambaHeads  int `json:"mamba_n_heads"`
	BambaDim    int `json:"mamba_d_head"`
	BambaState  int `json:"mamba_d_state"`
	BambaGroups int `json:"mamba_n_groups"`
	BambaConv   int `json:"mamba_d_conv"`

	// Kimi's linear layers and Jamba's, whose states are not known here.
	KimiLinear json.RawMessage `json:"linear_attn_config"`
	JambaEvery int             `json:"attn_layer_period"`

	// Ways to tell kinds of layers that are not known here: MiMo-V2 (whose windowed layers have
	// heads of their own), MiniMax-01 (linear ones), RecurrentGemma and Falcon-H1.
	MiMo      json.RawMessage `json:"hybrid_layer_pattern"`
	MiniMax   json.RawMessage `json:"attn_type_list"`
	Recurrent json.RawMessage `json:"block_types"`
	Falcon    json.RawMessage `json:"mamba_d_ssm"`
}

// The kinds of layers, as layer_types has them.
const (
	fullLayer    = "full_attention"
	slidingLayer = "sliding_attention"
	chunkedLayer = "chunked_attention"
	linearLayer  = "linear_attention"
	mambaLayer   = "mamba"
	noLayer      = "" // keeps nothing: an MLP alone
)

// kinds are those of all layers, in order; nil where nothing tells them apart. A kind that is not
// known is an error: a cache of a third of the size would look like a fast drive.
func (f *layerFields) kinds(layers int) (kinds []string, err error) {
	switch {
	case len(f.KimiLinear) > 0:
		return nil, unknownLayer("linear_attn_config", "linear")
	case f.JambaEvery > 1:
		return nil, unknownLayer("attn_layer_period", "mamba")
	}
	for field, value := range map[string]json.RawMessage{"hybrid_layer_pattern": f.MiMo,
		"attn_type_list": f.MiniMax, "block_types": f.Recurrent, "mamba_d_ssm": f.Falcon} {
		if len(value) > 0 && string(value) != "null" {
			return nil, fmt.Errorf("%s: what layers keep that it tells apart is not known here",
				field)
		}
	}
	switch {
	case f.Pattern != "":
		known := map[rune]string{'M': mambaLayer, '*': fullLayer, '-': noLayer, 'E': noLayer}
		for _, c := range f.Pattern {
			kind, ok := known[c]
			if !ok {
				return nil, fmt.Errorf("hybrid_override_pattern has %q, want M, *, - or E", c)
			}
			kinds = append(kinds, kind)
		}
	case len(f.BlockTypes) > 0:
		known := map[string]string{"mamba": mambaLayer, "attention": fullLayer, "mlp": noLayer,
			"moe": noLayer}
		for _, t := range f.BlockTypes {
			kind, ok := known[t]
			if !ok {
				return nil, unknownLayer("layers_block_type", t)
			}
			kinds = append(kinds, kind)
		}
	case len(f.Types) > 0:
		known := []string{fullLayer, slidingLayer, chunkedLayer, linearLayer, mambaLayer}
		for _, t := range f.Types {
			if t == "attention" { // Granite's
				t = fullLayer
			}
			if !slices.Contains(known, t) {
				return nil, unknownLayer("layer_types", t)
			}
			kinds = append(kinds, t)
		}
	case f.Interval > 0: // Qwen3-Next: the last of so many is full
		for i := range layers {
			kind := linearLayer
			if (i+1)%f.Interval == 0 {
				kind = fullLayer
			}
			kinds = append(kinds, kind)
		}
	case f.Sliding > 0 && f.SlidingPattern > 0:
		for i := range layers {
			kind := slidingLayer
			if (i+1)%f.SlidingPattern == 0 {
				kind = fullLayer
			}
			kinds = append(kinds, kind)
		}
	}
	if kinds != nil && len(kinds) != layers {
		return nil, fmt.Errorf("%d layers have a type, num_hidden_layers is %d", len(kinds), layers)
	}
	return kinds, nil
}

func unknownLayer(field, name string) error {
	return fmt.Errorf("%s has %q: what such a layer keeps of a token is not known here", field,
		name)
}

// maxLayers is more than any model has by a factor of thousand.
const maxLayers = 1 << 17

// apply gives a model what its layers keep.
func (f *layerFields) apply(m *Model) error {
	// Validate says what is wrong with such a number; it must not be counted up to here.
	if m.Layers < 1 || m.Layers > maxLayers {
		return nil
	}
	if len(f.CompressRatios) > 0 {
		return f.compress(m)
	}
	if f.IndexDim > 0 && m.Attention == MLA {
		m.index = indexer{layers: m.Layers, dim: f.IndexDim}
		if f.IndexerTypes != nil {
			m.index.layers = 0
			for _, t := range f.IndexerTypes {
				if t == "full" { // the others share it
					m.index.layers++
				}
			}
		}
	}
	kinds, err := f.kinds(m.Layers)
	if kinds == nil || err != nil {
		return err
	}
	// Layers that use the cache of those before them keep nothing (Gemma-3n).
	count := map[string]int{}
	for _, k := range kinds[:max(0, len(kinds)-max(0, f.SharedKV))] {
		count[k]++
	}
	m.Groups = []Group{}
	// Gemma-4's full layers have fewer and longer heads than those with a window.
	full := Group{Layers: count[fullLayer], KVHeads: f.GlobalHeads, HeadDim: f.GlobalDim}
	if full.Layers > 0 {
		m.Groups = append(m.Groups, full)
	}
	if n := count[slidingLayer]; n > 0 {
		window := f.Sliding
		if f.UseSliding != nil && !*f.UseSliding { // Qwen's have a window that is off
			window = 0
		}
		m.Groups = append(m.Groups, Group{Layers: n, Window: window})
	}
	if n := count[chunkedLayer]; n > 0 {
		m.Groups = append(m.Groups, Group{Layers: n, Window: f.Chunk})
	}
	// What a sequence keeps besides its tokens. It is told and not counted in entries: how many
	// states an engine stores of a sequence is its own choice.
	m.stateLayers = count[linearLayer] + count[mambaLayer]
	linear, mamba, err := f.states(m)
	if err != nil {
		return err
	}
	m.StateBytes = int64(count[linearLayer])*linear + int64(count[mambaLayer])*mamba
	switch {
	case len(m.Groups) == 0:
		return errors.New("no layer keeps anything of a token")
	case count[linearLayer] > 0 && linear == 0:
		return errors.New("layers of linear attention without linear_num_key_heads," +
			" linear_key_head_dim, linear_num_value_heads, linear_value_head_dim and" +
			" linear_conv_kernel_dim")
	case count[mambaLayer] > 0 && mamba == 0:
		return errors.New("mamba layers without mamba_num_heads, mamba_head_dim, ssm_state_size" +
			" and conv_kernel")
	}
	return nil
}

// states are the bytes of a layer of linear attention and of Mamba-2: a matrix for each head, and
// the last inputs of the convolution, which are bfloat16 in vLLM
// (vllm/model_executor/layers/mamba/mamba_utils.py). The matrix is of the model's type unless a
// field tells its own.
func (f *layerFields) states(m *Model) (linear, mamba int64, err error) {
	f.MambaHeads, f.MambaDim = cmp.Or(f.MambaHeads, f.BambaHeads), cmp.Or(f.MambaDim, f.BambaDim)
	f.MambaState = cmp.Or(f.MambaState, f.BambaState)
	f.MambaGroups = cmp.Or(f.MambaGroups, f.BambaGroups)
	f.MambaConv = cmp.Or(f.MambaConv, f.BambaConv)
	for _, n := range []int{f.LinearKeyHeads, f.LinearKeyDim, f.LinearValueHeads, f.LinearValueDim,
		f.LinearConv, f.MambaHeads, f.MambaDim, f.MambaState, f.MambaGroups, f.MambaConv} {
		if n < 0 || n > 1<<12 {
			return 0, 0, fmt.Errorf("a state has a dimension of %d, want 0 to %d", n, 1<<12)
		}
	}
	name := strings.TrimPrefix(cmp.Or(f.StateType, f.StateTypeToo, m.dtype()), "torch.")
	size, known := dtypes[strings.ToLower(name)]
	if !known || size.bytes < 1 {
		return 0, 0, fmt.Errorf("a state of type %q is not known", name)
	}
	bytes := int64(max(size.bytes, 2))
	keys, values := f.LinearKeyHeads*f.LinearKeyDim, f.LinearValueHeads*f.LinearValueDim
	if keys > 0 && values > 0 && f.LinearConv > 0 {
		linear = int64(2*keys+values)*int64(f.LinearConv-1)*2 +
			int64(values)*int64(f.LinearKeyDim)*bytes
	}
	if inner := f.MambaHeads * f.MambaDim; inner > 0 && f.MambaState > 0 && f.MambaConv > 0 {
		mamba = int64(inner)*int64(f.MambaState)*bytes +
			int64(inner+2*f.MambaGroups*f.MambaState)*int64(f.MambaConv-1)*2
	}
	return linear, mamba, nil
}

// compress gives a model the groups of DeepSeek-V4's compressed attention: in a layer of ratio r
// one entry stands for r tokens, with r = 0 there is none, and where r is 4 an indexer has a key
// for each of them; ratios behind the last layer are those of layers that predict ahead.
func (f *layerFields) compress(m *Model) error {
	if len(f.CompressRatios) < m.Layers {
		return fmt.Errorf("%d compress_ratios for %d layers", len(f.CompressRatios), m.Layers)
	}
	m.Attention, m.csaWindow, m.Groups = CSA, f.Sliding, []Group{}
	count := map[int]int{}
	for _, r := range f.CompressRatios[:m.Layers] {
		if r < 0 || r > 1<<20 {
			return fmt.Errorf("a compress_ratio is %d, want 0 to %d", r, 1<<20)
		}
		count[r]++
	}
	for r, n := range count {
		if r > 0 {
			m.Groups = append(m.Groups, Group{Layers: n, Every: r})
		}
	}
	slices.SortFunc(m.Groups, func(a, b Group) int { return cmp.Compare(a.Every, b.Every) })
	if n := count[indexRatio]; n > 0 && f.IndexDim > 0 {
		m.index = indexer{layers: n, dim: f.IndexDim, every: indexRatio}
	}
	if len(m.Groups) == 0 {
		return errors.New("no layer keeps anything of a token")
	}
	return nil
}

// indexRatio is that of the layers with an indexer: those of larger ratios have so few entries that
// all are looked at.
const indexRatio = 4
