package model

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Attention is the type of a model's attention, which decides what a token keeps.
type Attention string

// The attention types whose caches differ in size.
const (
	MHA Attention = "mha" // every head has its own keys and values
	GQA Attention = "gqa" // groups of heads share keys and values
	MLA Attention = "mla" // one compressed latent per token and layer
	CSA Attention = "csa" // one entry for several tokens, and the last tokens uncompressed
)

// Model holds the dimensions that decide how many bytes a token takes in the KV cache. Their names
// are like those in a Hugging Face config.json.
type Model struct {
	Key  string // for flags and files, such as "llama3.1-8b"
	Name string // for readers

	Layers  int
	Hidden  int
	Heads   int
	KVHeads int
	// HeadDim is the length of one head's key; 0 means Hidden / Heads.
	HeadDim   int
	ValueDim  int // the length of a value; 0 means the length of a key. MLA has none
	Attention Attention
	// KVLoraRank and QKRopeHeadDim matter for MLA only.
	KVLoraRank    int
	QKRopeHeadDim int
	// Window is the longest prompt plus answer, in tokens; 0 = unknown.
	Window int
	// DType is the type of a cached number: "float16" when empty. StoredAs names this type and its
	// source if it is not the type of the weights.
	DType, StoredAs string
	declared        string // the type that the checkpoint declares

	// LayersFrom is the key of a config.json with the kinds of layers, "" without one.
	LayersFrom string

	// Groups are the layers that keep something of every token, if they differ; nil means that all
	// Layers are alike. StateBytes is what the other layers keep of a sequence of any length.
	Groups      []Group
	StateBytes  int64
	stateLayers int // layers with a state
	index       indexer
	csaWindow   int // tokens
	ownerIndex  int // length of the indexer's key in each entry of compressed attention
}

// Complete sets fields that a configuration may leave out. Without a number of KV heads every head has
// its own KV head. The numbers of heads decide between MHA and GQA.
func (m *Model) Complete() {
	m.Attention = Attention(strings.ToLower(string(m.Attention)))
	if m.Attention == MLA {
		return
	}
	m.KVHeads = cmp.Or(m.KVHeads, m.Heads)
	if m.Attention == "" {
		m.Attention = GQA
		if m.KVHeads == m.Heads {
			m.Attention = MHA
		}
	}
}

// headDim returns the length of one head's key, 0 if it is unknown.
func (m Model) headDim() int {
	if m.HeadDim > 0 || m.Heads <= 0 {
		return m.HeadDim
	}
	return m.Hidden / m.Heads
}

// dtype returns the name of the cached type, or the default.
func (m Model) dtype() string { return strings.ToLower(cmp.Or(m.DType, "float16")) }

// BytesPerToken returns the bytes of one token in the caches of all ranks together, rounded up. A
// layer has a key and a value per KV head, or with MLA a latent and a rotary part. Scales and the
// keys of indexers count. Layers with a window count in full, because engines store them block by
// block. Layers with a state do not count: see FixedBytes. The model must be valid; an unknown dtype
// counts as 0 bytes.
func (m Model) BytesPerToken() int64 { return int64(math.Ceil(m.bytesPerToken())) }

// bytesPerToken also accepts invalid models: each factor is at most 2^20, so floating point cannot
// overflow, as integers could. It is exact for all valid models.
func (m Model) bytesPerToken() float64 {
	sum := m.indexBytes()
	for _, g := range m.groups() {
		sum += m.perToken(g)
	}
	return sum
}

// maxBytesPerToken bounds the bytes of a token, so that products with a token count cannot overflow.
// Real models need less than 10 MiB.
const maxBytesPerToken = 1 << 30

// Validate returns an error that lists everything that is wrong with the model, nil if nothing is.
func (m Model) Validate() error {
	label := "without a name"
	if name := cmp.Or(m.Key, m.Name); name != "" {
		label = strconv.Quote(name)
	}
	var problems []error
	must := func(holds bool, format string, args ...any) bool {
		if !holds {
			problem := fmt.Sprintf(format, args...)
			problems = append(problems, fmt.Errorf("model %s: %s", label, problem))
		}
		return holds
	}
	inRange := func(name string, value, least int) bool {
		const limit = 1 << 20
		return must(value >= least && value <= limit,
			"%s is %d, must be %d to %d", name, value, least, limit)
	}
	inRange("layers", m.Layers, 1)
	switch m.Attention {
	case MLA:
		inRange("kv_lora_rank", m.KVLoraRank, 1)
		inRange("qk_rope_head_dim", m.QKRopeHeadDim, 0)
	case CSA:
		must(m.Groups != nil, "attention type csa needs the compress_ratios of a config.json")
		inRange("head_dim", m.HeadDim, 1)
		inRange("qk_rope_head_dim", m.QKRopeHeadDim, 0)
		must(m.QKRopeHeadDim <= m.HeadDim, "qk_rope_head_dim (%d) is more than head_dim (%d)",
			m.QKRopeHeadDim, m.HeadDim)
		inRange("sliding_window", m.csaWindow, 0)
	case MHA, GQA:
		inRange("v_head_dim", m.ValueDim, 0)
		inRange("kv_heads", m.KVHeads, 1)
		if m.HeadDim != 0 {
			inRange("head_dim", m.HeadDim, 1)
			break
		}
		// Without an explicit head dimension, Hidden must be a multiple of Heads.
		heads, hidden := inRange("heads", m.Heads, 1), inRange("hidden", m.Hidden, 1)
		must(!heads || !hidden || m.Hidden%m.Heads == 0,
			"hidden (%d) is no multiple of heads (%d): give head_dim", m.Hidden, m.Heads)
	default:
		must(false, "attention type %q is unknown, must be mha, gqa or mla", m.Attention)
	}
	ok := len(problems) == 0 // then the dimensions can be multiplied
	must(m.Window >= 0 && m.Window <= 1<<30, "the context window is %d tokens, must be 0 "+
		"(unknown) to %d", m.Window, 1<<30)
	must(m.Attention != MHA || m.Heads <= 0 || m.KVHeads <= 0 || m.Heads == m.KVHeads,
		"attention type mha needs kv_heads (%d) equal to heads (%d); with fewer it is gqa",
		m.KVHeads, m.Heads)
	must(m.Attention != GQA || m.Heads <= 0 || m.KVHeads <= 0 || m.Heads%m.KVHeads == 0,
		"heads (%d) is no multiple of kv_heads (%d)", m.Heads, m.KVHeads)
	t, known := dtypes[m.dtype()]
	must(known, "dtype %q is unknown, must be one of %s", cmp.Or(m.StoredAs, m.DType),
		strings.Join(slices.Sorted(maps.Keys(dtypes)), ", "))
	latent := m.Latents()
	must(!t.heads || !latent, "dtype %s is of keys and values by head, which this model has not",
		m.DType)
	must(!t.latents || latent, "dtype %s is of latents, which this model has not", m.DType)
	must(t.bytes != 1 || m.Attention != MLA || m.QKRopeHeadDim > 0 || m.index.layers == 0,
		"qk_rope_head_dim is 0: what engines store of such latents as %s is not known here",
		m.DType)
	must(t.bytes >= 2 || !m.index.alone, "indexer_head_dim: engines store such a model in "+
		"bfloat16 alone, not in %s", m.DType)
	must(t.bytes >= 2 || m.ownerIndex == 0, "kv_source_layer_ids: what engines store of such a model as %s "+
		"is not known here", m.DType)
	must(!known || !ok || m.bytesPerToken() <= maxBytesPerToken,
		"a token takes more than %d bytes: check the dimensions", maxBytesPerToken)
	return errors.Join(problems...)
}

// OwnType is the name of the model's own type of cached numbers.
const OwnType = "auto"

// DTypes are the values of -kv-dtype.
func DTypes() []string {
	return []string{OwnType, "float32", "float16", "bfloat16", "fp8", "fp8_ds_mla", "int8", "int4",
		"nvfp4"}
}

// In returns the model with its cached numbers in the given type. OwnType means the type that the
// checkpoint declares, as in engines, or else the type of its weights. The error says that the model
// cannot be stored in this type.
func (m Model) In(dtype string) (Model, error) {
	if dtype != OwnType && dtype != m.declared {
		m.DType, m.StoredAs = dtype, dtype
		if m.declared != "" {
			m.StoredAs += " (-kv-dtype; the checkpoint declares " + m.declared + ")"
		}
	}
	return m, m.Validate()
}

// Arithmetic returns the calculation of BytesPerToken as text: layers × bytes of each, and the key of a
// config.json with the kinds of layers.
func (m Model) Arithmetic() string {
	var parts []string
	add := func(layers, every int, bytes float64, what string) {
		if every > 1 {
			what += fmt.Sprintf(" for %d tokens", every)
		}
		parts = append(parts, fmt.Sprintf("%d × %v B%s", layers, bytes, what))
	}
	for _, g := range m.groups() {
		add(g.Layers, g.Every, m.entry(g), "")
	}
	if x := m.index; x.layers > 0 {
		add(x.layers, x.every, m.indexBytes()*float64(max(1, x.every))/float64(x.layers), " index")
	}
	return strings.TrimSuffix(strings.Join(parts, " + ")+", by "+m.LayersFrom, ", by ")
}

// BuiltIn returns the built-in models in the order of the documentation, with the dimensions of
// their published config.json. tiny-1b is invented and has no window. Every other layer of gpt-oss
// has a window of 128 tokens, which does not change the bytes of a token. The caller owns the slice.
func BuiltIn() []Model {
	model := func(key, name string, layers, hidden, heads, kvHeads, headDim int, a Attention,
		rank, rope, window int) Model {
		return Model{Key: key, Name: name, Layers: layers, Hidden: hidden, Heads: heads,
			KVHeads: kvHeads, HeadDim: headDim, Attention: a, KVLoraRank: rank,
			QKRopeHeadDim: rope, Window: window}
	}
	windows := func(m Model) Model {
		m.Groups = []Group{{Layers: m.Layers / 2}, {Layers: m.Layers / 2, Window: 128}}
		return m
	}
	return []Model{
		// layers, hidden, heads, KV heads, head dimension, attention, MLA's latent and rotary part,
		// window
		model("tiny-1b", "Tiny 1B", 12, 1024, 8, 4, 128, GQA, 0, 0, 0),
		model("mistral-7b", "Mistral 7B", 32, 4096, 32, 8, 128, GQA, 0, 0, 32768),
		model("llama2-7b", "Llama 2 7B", 32, 4096, 32, 32, 128, MHA, 0, 0, 4096),
		model("llama3.1-8b", "Llama 3.1 8B", 32, 4096, 32, 8, 128, GQA, 0, 0, 131072),
		model("llama3.1-70b-instruct", "Llama 3.1 70B Instruct", 80, 8192, 64, 8, 128, GQA, 0, 0,
			131072),
		model("deepseek-v3", "DeepSeek V3", 61, 7168, 128, 0, 0, MLA, 512, 64, 163840),
		model("qwen3-32b", "Qwen3 32B", 64, 5120, 64, 8, 128, GQA, 0, 0, 40960),
		windows(model("gpt-oss-120b", "GPT-OSS 120B", 36, 2880, 64, 8, 64, GQA, 0, 0, 131072)),
		windows(model("gpt-oss-20b", "GPT-OSS 20B", 24, 2880, 64, 8, 64, GQA, 0, 0, 131072)),
	}
}

// TPRule decides how many bytes of an entry one rank of a tensor-parallel group keeps.
type TPRule string

const (
	// TPEngine is the rule of inference engines: KV heads are divided among the ranks, but no head
	// is split, so a rank keeps 1/min(TP, kv_heads). The latents of MLA are replicated.
	TPEngine TPRule = "engine"
	// TPMLPerf divides every entry by TP, as MLPerf Storage's KV-cache program does.
	TPMLPerf TPRule = "mlperf"
)

// Latents reports whether tokens are kept as latents. Latents belong to no head, so every rank keeps
// all of them.
func (m Model) Latents() bool { return m.Attention == MLA || m.Attention == CSA }

// SidePools reports whether an engine keeps pools apart from the keys and values of all tokens: for layers with
// windows, for states, or for an indexer.
func (m Model) SidePools() bool {
	return m.StateBytes > 0 || m.index.dim > 0 || m.csaWindow > 0 ||
		slices.ContainsFunc(m.Groups, func(g Group) bool { return g.Window > 0 })
}

// NewSizer returns the Sizer of a valid model at tensor parallelism tp (below 1 counts as 1).
func NewSizer(m Model, tp int, rule TPRule) Sizer {
	divisor := max(1, tp)
	if rule != TPMLPerf {
		if m.Latents() {
			divisor = 1
		} else {
			divisor = min(divisor, max(1, m.KVHeads))
		}
		// Groups with few heads are divided among fewer ranks than other groups, and the keys of
		// indexers are not divided. So compute the bytes of one rank.
		one, uneven := m.indexBytes(), m.index.layers > 0
		for _, g := range m.groups() {
			parts := min(max(1, tp), max(1, cmp.Or(g.KVHeads, m.KVHeads)))
			uneven = uneven || parts != divisor
			one += m.perToken(g) / float64(parts)
		}
		if uneven && divisor > 1 {
			return Sizer{BytesPerToken: int64(math.Ceil(one))}
		}
	}
	return Sizer{BytesPerToken: m.BytesPerToken(), Divisor: int64(divisor)}
}

// PagedSizer returns the Sizer for objects of whole pages, and the pages. If the model has none, p is
// nil and s counts 0 bytes per token. With TPMLPerf one rank keeps 1/tp of the pages of the whole
// model.
func PagedSizer(m Model, tp int, rule TPRule) (s Sizer, p *Paging) {
	if rule == TPMLPerf {
		s.Divisor, tp = int64(max(1, tp)), 1
	}
	if p = m.Paging(tp); p != nil {
		s.BytesPerToken = p.BytesPerToken()
	}
	return s, p
}

// Sizer converts token counts into bytes of one or several ranks. The zero Sizer returns 0 bytes.
type Sizer struct {
	BytesPerToken int64 // of all ranks, or of one rank if they cannot be divided evenly
	Divisor       int64 // 0 and 1 mean: not divided
	// Ranks is the number of ranks of equal bytes to sum over; 0 and 1 mean one rank.
	Ranks int64
}

// One returns the Sizer of one rank.
func (s Sizer) One() Sizer {
	s.Ranks = 1
	return s
}

// Bytes returns the size of an entry of so many tokens, rounded up to a whole byte per rank.
func (s Sizer) Bytes(tokens int) int64 {
	divisor := max(1, s.Divisor)
	return (int64(tokens)*s.BytesPerToken + divisor - 1) / divisor * max(1, s.Ranks)
}
