package model

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Attention tells how a model keeps its keys and values.
type Attention string

// The attention types whose caches differ in size.
const (
	MHA Attention = "mha" // every head has its own keys and values
	GQA Attention = "gqa" // groups of heads share them
	MLA Attention = "mla" // one compressed latent per token and layer
)

// Model holds the dimensions that decide how many bytes a token leaves in the KV cache.
type Model struct {
	Key  string // what the user types, such as "llama3.1-8b"
	Name string // what a person reads

	Layers, Hidden, Heads, KVHeads int
	// HeadDim is the length of one head's key; 0 means Hidden / Heads.
	HeadDim   int
	Attention Attention
	// KVLoraRank and QKRopeHeadDim matter for MLA only.
	KVLoraRank, QKRopeHeadDim int
	// DType is the type of a cached number: "float16" when empty.
	DType string
}

// dtypeBytes maps the spellings of configuration files to bytes per number.
var dtypeBytes = map[string]int64{
	"float32": 4, "fp32": 4,
	"float16": 2, "fp16": 2, "half": 2, "bfloat16": 2, "bf16": 2,
	"int8": 1, "fp8": 1, "float8": 1, "float8_e4m3fn": 1, "float8_e5m2": 1,
}

// headDim returns the length of one head's key, 0 when it cannot be known.
func (m Model) headDim() int {
	if m.HeadDim > 0 || m.Heads <= 0 {
		return m.HeadDim
	}
	return m.Hidden / m.Heads
}

// dtype returns the name of the cached type with the default filled in.
func (m Model) dtype() string {
	if m.DType == "" {
		return "float16"
	}
	return strings.ToLower(m.DType)
}

// BytesPerToken returns what one token takes in the caches of all ranks together.
// The model must be valid; an unknown dtype counts as 0 bytes.
func (m Model) BytesPerToken() int64 {
	numbers := int64(m.Layers)
	if m.Attention == MLA {
		numbers *= int64(m.KVLoraRank + m.QKRopeHeadDim)
	} else {
		numbers *= int64(m.KVHeads) * int64(m.headDim()) * 2
	}
	return numbers * dtypeBytes[m.dtype()]
}

// maxBytesPerToken keeps every product with a token count far away from overflow; real models need
// less than 10 MiB.
const maxBytesPerToken = 1 << 30

// Validate reports everything that is wrong with the model in one error, nil if nothing is.
func (m Model) Validate() error {
	var problems []error
	bad := func(format string, args ...any) {
		problems = append(problems, fmt.Errorf("model %s: %s", m.label(), fmt.Sprintf(format, args...)))
	}
	inRange := func(name string, value int) bool {
		const limit = 1 << 20
		if value < 1 || value > limit {
			bad("%s is %d, must be 1 to %d", name, value, limit)
			return false
		}
		return true
	}
	ok := inRange("layers", m.Layers)
	switch m.Attention {
	case MLA:
		ok = inRange("kv_lora_rank", m.KVLoraRank) && ok
		if m.QKRopeHeadDim < 0 || m.QKRopeHeadDim > 1<<20 {
			bad("qk_rope_head_dim is %d, must be 0 to %d", m.QKRopeHeadDim, 1<<20)
			ok = false
		}
	case MHA, GQA:
		ok = inRange("kv_heads", m.KVHeads) && ok
		if m.HeadDim != 0 {
			ok = inRange("head_dim", m.HeadDim) && ok
			break
		}
		// Without an explicit head dimension the two others must be right, and divide.
		heads, hidden := inRange("heads", m.Heads), inRange("hidden", m.Hidden)
		if !heads || !hidden {
			ok = false
		} else if m.Hidden%m.Heads != 0 {
			bad("hidden (%d) is no multiple of heads (%d): give head_dim", m.Hidden, m.Heads)
			ok = false
		}
	default:
		bad("attention type %q is unknown, must be mha, gqa or mla", m.Attention)
		ok = false
	}
	if m.Attention == MHA && m.Heads > 0 && m.KVHeads > 0 && m.Heads != m.KVHeads {
		bad("attention type mha needs kv_heads (%d) equal to heads (%d); with fewer it is gqa", m.KVHeads, m.Heads)
	}
	if _, known := dtypeBytes[m.dtype()]; !known {
		bad("dtype %q is unknown, must be one of %s", m.DType, strings.Join(dtypeNames(), ", "))
	} else if ok && m.tooLarge() {
		bad("a token takes more than %d bytes: check the dimensions", maxBytesPerToken)
	}
	return errors.Join(problems...)
}

// tooLarge tells whether a token exceeds maxBytesPerToken. Factors are at most 2^20 each, so that
// floating point, unlike integers, cannot overflow here.
func (m Model) tooLarge() bool {
	numbers := float64(m.Layers)
	if m.Attention == MLA {
		numbers *= float64(m.KVLoraRank + m.QKRopeHeadDim)
	} else {
		numbers *= float64(m.KVHeads) * float64(m.headDim()) * 2
	}
	return numbers*float64(dtypeBytes[m.dtype()]) > maxBytesPerToken
}

// label is how messages call the model.
func (m Model) label() string {
	switch {
	case m.Key != "":
		return fmt.Sprintf("%q", m.Key)
	case m.Name != "":
		return fmt.Sprintf("%q", m.Name)
	}
	return "without a name"
}

func dtypeNames() []string {
	names := make([]string, 0, len(dtypeBytes))
	for name := range dtypeBytes {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// BuiltIn returns the built-in models in the order of the documentation. The slice is the caller's.
func BuiltIn() []Model {
	return []Model{
		{Key: "tiny-1b", Name: "Tiny 1B", Layers: 12, Hidden: 1024, Heads: 8, KVHeads: 4, HeadDim: 128, Attention: GQA},
		{Key: "mistral-7b", Name: "Mistral 7B", Layers: 32, Hidden: 4096, Heads: 32, KVHeads: 8, HeadDim: 128, Attention: GQA},
		{Key: "llama2-7b", Name: "Llama 2 7B", Layers: 32, Hidden: 4096, Heads: 32, KVHeads: 32, HeadDim: 128, Attention: MHA},
		{Key: "llama3.1-8b", Name: "Llama 3.1 8B", Layers: 32, Hidden: 4096, Heads: 32, KVHeads: 8, HeadDim: 128, Attention: GQA},
		{Key: "llama3.1-70b-instruct", Name: "Llama 3.1 70B Instruct", Layers: 80, Hidden: 8192, Heads: 64, KVHeads: 8, HeadDim: 128, Attention: GQA},
		{Key: "deepseek-v3", Name: "DeepSeek V3", Layers: 61, Hidden: 7168, Heads: 128, Attention: MLA, KVLoraRank: 512, QKRopeHeadDim: 64},
		{Key: "qwen3-32b", Name: "Qwen3 32B", Layers: 64, Hidden: 5120, Heads: 64, KVHeads: 8, HeadDim: 128, Attention: GQA},
		{Key: "gpt-oss-120b", Name: "GPT-OSS 120B", Layers: 36, Hidden: 2880, Heads: 64, KVHeads: 8, HeadDim: 64, Attention: GQA},
		{Key: "gpt-oss-20b", Name: "GPT-OSS 20B", Layers: 24, Hidden: 2880, Heads: 64, KVHeads: 8, HeadDim: 64, Attention: GQA},
	}
}

// TPRule says what one rank of a tensor-parallel group keeps of an entry.
type TPRule string

const (
	// TPEngine is what inference engines do: KV heads are spread over the ranks as far as they go
	// (a head is never split, so 1/min(TP, kv_heads) remains), and the latents of MLA are
	// replicated.
	TPEngine TPRule = "engine"
	// TPMLPerf divides every entry by TP, as MLPerf Storage's KV-cache program does.
	TPMLPerf TPRule = "mlperf"
)

// NewSizer returns the Sizer of a valid model at tensor parallelism tp (below 1 counts as 1).
func NewSizer(m Model, tp int, rule TPRule) Sizer {
	divisor := max(1, tp)
	if rule != TPMLPerf {
		if m.Attention == MLA {
			divisor = 1
		} else {
			divisor = min(divisor, max(1, m.KVHeads))
		}
	}
	return Sizer{BytesPerToken: m.BytesPerToken(), Divisor: int64(divisor)}
}

// Sizer turns token counts into bytes of one rank. The zero Sizer makes everything 0 bytes.
type Sizer struct {
	BytesPerToken int64 // all ranks
	Divisor       int64 // 0 and 1 mean: not divided
}

// Bytes returns the size of an entry of that many tokens, rounded up to a whole byte.
func (s Sizer) Bytes(tokens int) int64 {
	divisor := max(1, s.Divisor)
	return (int64(tokens)*s.BytesPerToken + divisor - 1) / divisor
}
