package model

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// The kinds of layers, as layer_types has them.
const (
	fullLayer      = "full_attention"
	slidingLayer   = "sliding_attention"
	chunkedLayer   = "chunked_attention"
	linearLayer    = "linear_attention"
	lightningLayer = "lightning_attention" // whose state has no convolution
	mambaLayer     = "mamba"
	noLayer        = "none" // keeps nothing of a token of text
)

// kindNames are the names of kinds in all keys.
var kindNames = map[string]string{
	fullLayer: fullLayer, "attention": fullLayer, "*": fullLayer, "G": fullLayer,
	"deepseek_sparse_attention": fullLayer, // indexer says the rest
	slidingLayer:                slidingLayer, "L": slidingLayer,
	chunkedLayer: chunkedLayer, linearLayer: linearLayer, lightningLayer: lightningLayer,
	mambaLayer: mambaLayer, "M": mambaLayer,
	"hybrid_layer_pattern 0": fullLayer, "hybrid_layer_pattern 1": slidingLayer, // MiMo-V2
	"attn_type_list 1": fullLayer, // MiniMax
	noLayer:            noLayer, "mlp": noLayer, "moe": noLayer, "-": noLayer, "E": noLayer,
}

// kinds are those of all layers, in order, and the key that has them; nil where nothing tells them
// apart. Publishers write them in many ways. A kind that is not known is an error: a cache of a
// third of the size would look like a fast drive.
func (f *fields) kinds(m *Model, window int) (key string, kinds []string, err error) {
	n := m.Layers
	kimi := f.sub("linear_attn_config")
	attn, kda := kimi.nums("full_attn_layers"), kimi.nums("kda_layers")
	sharers := f.num("cla_share_factor") // Hunyuan: so many layers have one cache
	if !f.flag("use_cla") {
		sharers = 0
	}
	letters := f.text("sliding_window_pattern")
	if window == 0 {
		letters = ""
	}
	for _, c := range []struct {
		key   string
		kinds []string
	}{
		{"hybrid_override_pattern", strings.Split(f.text("hybrid_override_pattern"), "")},
		{"layers_block_type", f.texts("layers_block_type")},
		{"layer_types", f.texts("layer_types")},
		{"hybrid_layer_pattern", f.texts("hybrid_layer_pattern")},
		{"attn_type_list", f.texts("attn_type_list")},
		{"block_configs", f.puzzle(m)},
		// Kimi, of which some files count from 0 and some from 1; Bamba; Mllama, some of whose
		// layers look at images alone.
		{"linear_attn_config", slices.Concat(slices.Repeat([]string{fullLayer}, len(attn)),
			slices.Repeat([]string{linearLayer}, len(kda)))},
		{"attn_layer_indices", some(n, f.nums("attn_layer_indices"), fullLayer, mambaLayer)},
		{"cross_attention_layers", some(n, f.nums("cross_attention_layers"), noLayer, fullLayer)},
		{"cla_share_factor", whole(n, sharers, noLayer)},
		{"layer_group_size", whole(n, f.num("layer_group_size"), lightningLayer)}, // Ling-linear
		{"full_attention_interval", every(n, f.num("full_attention_interval"), linearLayer)},
		{"sliding_window_pattern", pattern(n, letters)},
		{"num_kv_shared_layers", every(n, min(1, f.num("num_kv_shared_layers")), fullLayer)},
	} {
		if len(c.kinds) > 0 && kinds == nil {
			key, kinds = c.key, slices.Clone(c.kinds)
		}
	}
	for i, name := range kinds {
		if kinds[i] = cmp.Or(kindNames[key+" "+name], kindNames[name]); kinds[i] == "" {
			return "", nil, fmt.Errorf("%s has %q: what such a layer keeps of a token is not "+
				"known here", key, name)
		}
	}
	// Some files go on with the layers that predict ahead.
	if len(kinds) == n+max(0, f.num("num_nextn_predict_layers")) {
		kinds = kinds[:n]
	}
	if kinds != nil && len(kinds) != n {
		return "", nil, fmt.Errorf("%s: %d layers have a type, num_hidden_layers is %d", key,
			len(kinds), n)
	}
	return key, kinds, nil
}

// every is n layers of which one in so many, the last of them, is full.
func every(n, many int, others string) (kinds []string) {
	for i := 0; many > 0 && i < n; i++ {
		kinds = append(kinds, others)
		if (i+1)%many == 0 {
			kinds[i] = fullLayer
		}
	}
	return kinds
}

// whole is every, where a rest is not known: engines disagree about it.
func whole(n, many int, others string) []string {
	if many > 0 && n%many > 0 {
		return []string{"part of a group"}
	}
	return every(n, many, others)
}

// pattern is every with a number in the text, or its letters again and again.
func pattern(n int, text string) (kinds []string) {
	if many, err := strconv.Atoi(text); err == nil {
		return every(n, many, slidingLayer)
	}
	for i := 0; text != "" && i < n; i++ {
		kinds = append(kinds, string(text[i%len(text)]))
	}
	return kinds
}

// some is n layers, of which those that are listed are of a kind. Their order means nothing.
func some(n int, listed []int, kind, others string) []string {
	switch {
	case len(listed) == 0:
		return nil
	case slices.Min(listed) < 0 || slices.Max(listed) >= n:
		return []string{"a layer that is not there"}
	}
	return append(slices.Repeat([]string{kind}, len(listed)),
		slices.Repeat([]string{others}, max(0, n-len(listed)))...)
}

// maxLayers is more than any model has by a factor of thousand.
const maxLayers = 1 << 17

// apply gives a model what its layers keep.
func (f *fields) apply(m *Model) error {
	// Validate says what is wrong with such a number; it must not be counted up to here.
	if m.Layers < 1 || m.Layers > maxLayers {
		return nil
	}
	if ratios := f.nums("compress_ratios"); len(ratios) > 0 {
		return f.compress(m, ratios)
	}
	window := f.num("sliding_window", "sliding_window_size")
	if f.of["use_sliding_window"] != nil && !f.flag("use_sliding_window") {
		window = 0 // Qwen's are off
	}
	key, kinds, err := f.kinds(m, window)
	if err != nil {
		return err
	}
	// Layers that use the cache of those before them keep nothing (Gemma-3n).
	count := map[string]int{fullLayer: m.Layers}
	for i, k := range kinds {
		if i == 0 {
			clear(count)
		}
		if i < len(kinds)-f.num("num_kv_shared_layers") {
			count[k]++
		}
	}
	if m.index, err = f.indexer(m, count[fullLayer]); err != nil {
		return err
	}
	other := f.sub("attention_other_setting") // of Step-3.5's layers with a window
	// Gemma-4's full layers have fewer and longer heads than those with a window.
	full := Group{KVHeads: f.num("num_global_key_value_heads"), HeadDim: f.num("global_head_dim")}
	sliding := Group{Window: window, ValueDim: f.num("swa_v_head_dim"),
		KVHeads: cmp.Or(f.num("swa_num_key_value_heads"), other.num("num_attention_groups")),
		HeadDim: cmp.Or(f.num("swa_head_dim"), other.num("head_dim"))}
	chunked := Group{Window: f.num("attention_chunk_size")}
	groups := []Group{}
	for i, kind := range []string{fullLayer, slidingLayer, chunkedLayer} {
		if g := []Group{full, sliding, chunked}[i]; count[kind] > 0 {
			g.Layers = count[kind]
			groups = append(groups, g)
		}
	}
	if key == "" {
		return nil
	}
	m.LayersFrom, m.Groups = key, groups
	if len(groups) == 0 {
		return errors.New("no layer keeps anything of a token")
	}
	// What a sequence keeps besides its tokens. It is reported and not counted in entries: how many
	// states an engine stores of a sequence is its own choice.
	for _, kind := range []string{linearLayer, lightningLayer, mambaLayer} {
		bytes, err := f.state(kind, m) // which reads its keys in any case
		if count[kind] == 0 {
			continue
		}
		if err != nil || bytes > maxBytesPerToken {
			return cmp.Or(err, fmt.Errorf("%s layers have a state of %.0f bytes", kind, bytes))
		}
		m.stateLayers += count[kind]
		m.StateBytes += int64(count[kind]) * int64(bytes)
	}
	return nil
}

// state is the bytes of that of a layer: a matrix for each head, and of linear attention and
// Mamba-2 the last inputs of the convolution, all but one, which are bfloat16 in vLLM
// (vllm/model_executor/layers/mamba/mamba_utils.py). The matrix is of the model's type unless a key
// has its own, and Kimi's float32.
func (f *fields) state(kind string, m *Model) (bytes float64, err error) {
	num := func(f *fields, keys ...string) float64 {
		n := f.num(keys...)
		if n < 1 && err == nil {
			err = fmt.Errorf("%s layers without %s", kind, keys[0])
		}
		return float64(n)
	}
	name := strings.TrimPrefix(cmp.Or(f.text("mamba_ssm_dtype"), f.text("mamba_ssm_cache_dtype"),
		m.dtype()), "torch.")
	t, known := dtypes[strings.ToLower(name)]
	if !known || t.bytes < 1 {
		err = fmt.Errorf("a state of type %q is not known", name)
	}
	size := max(t.bytes, 2)
	switch kimi := f.sub("linear_attn_config"); {
	case kind == lightningLayer:
		return float64(m.Heads) * float64(m.headDim()) * float64(m.headDim()) * size, err
	case kind == mambaLayer:
		heads := num(f, "mamba_num_heads", "mamba_n_heads")
		if f.text("mamba_d_head") == "auto" {
			f.of["mamba_d_head"] = fmt.Appendf(nil, "%.0f",
				num(f, "mamba_expand")*float64(m.Hidden)/max(1, heads))
		}
		inner := heads * num(f, "mamba_head_dim", "mamba_d_head")
		states := num(f, "ssm_state_size", "mamba_d_state")
		inputs := inner + 2*num(f, "n_groups", "mamba_n_groups")*states
		return inner*states*size + inputs*(num(f, "conv_kernel", "mamba_d_conv")-1)*2, err
	case len(kimi.of) > 0:
		dim := num(kimi, "head_dim")
		inner := num(kimi, "num_heads") * dim
		return inner*dim*4 + 3*inner*(num(kimi, "short_conv_kernel_size")-1)*2, err
	}
	keys, dim := num(f, "linear_num_key_heads"), num(f, "linear_key_head_dim")
	values := num(f, "linear_num_value_heads") * num(f, "linear_value_head_dim")
	return values*dim*size + (2*keys*dim+values)*(num(f, "linear_conv_kernel_dim")-1)*2, err
}

// indexer is what sparse attention keeps in the layers that look at everything, which are so many.
func (f *fields) indexer(m *Model, full int) (indexer, error) {
	unknown := func(key string) (indexer, error) {
		return indexer{}, fmt.Errorf("%s: what its indexer keeps of a token is not known here", key)
	}
	// DeepSeek-V3.2 and GLM-5.
	if x := (indexer{dim: f.num("index_head_dim"), every: f.num("index_kpool")}); x.dim > 0 {
		types := f.texts("indexer_types")
		for _, t := range types {
			if t == "full" { // a shared one is that of a layer before it
				x.layers++
			} else if t != "shared" {
				return unknown("indexer_types")
			}
		}
		switch pooled, freq := f.flag("index_kpool_compress"), f.num("index_topk_freq"); {
		case m.Attention != MLA:
			return unknown("index_head_dim")
		case x.every > 1 && !pooled:
			return unknown("index_kpool")
		case types == nil && (freq > 1 || f.text("index_topk_pattern") != ""):
			return unknown("index_topk_freq without indexer_types")
		case types == nil:
			x.layers = full
		case len(types) != full:
			return unknown("indexer_types of other layers")
		}
		f.num("index_topk")
		return x, nil
	}
	// Qwen3.8-Flash-Next.
	if x := (indexer{layers: full, dim: f.num("indexer_head_dim") * f.num("indexer_kv_heads"),
		every: f.num("indexer_compress_ratio"), bf16: true, alone: true}); x.dim > 0 {
		f.num("indexer_budget")
		return x, nil
	}
	// MiniMax-M3. A value of the index that is not disabled would be kept, too.
	s := f.sub("sparse_attention_config")
	if !s.flag("use_sparse_attention") {
		return indexer{}, nil
	}
	layers, disabled := s.nums("sparse_attention_freq"), s.nums("sparse_disable_index_value")
	x := indexer{dim: s.num("sparse_index_dim"), bf16: true}
	for _, n := range layers {
		x.layers += n
	}
	if !slices.Equal(layers, disabled) || x.layers < 1 || x.layers > full || x.dim < 1 {
		return unknown("sparse_attention_config")
	}
	return x, nil
}

// puzzle are the layers of a model that Puzzle made of another (Llama-Nemotron): so many heads
// share keys and values, and some layers have no attention.
func (f *fields) puzzle(m *Model) (kinds []string) {
	var blocks []struct {
		Attention struct {
			Heads  int  `json:"n_heads_in_group"`
			NoOp   bool `json:"no_op"`
			Linear bool `json:"replace_with_linear"`
			Window int  `json:"window_length"`
		}
	}
	f.get(&blocks, "block_configs")
	for _, b := range blocks {
		a := b.Attention
		switch shared := m.Heads / max(1, a.Heads); {
		case a.NoOp || a.Linear:
			kinds = append(kinds, noLayer)
		case a.Heads > 0 && shared*a.Heads == m.Heads && a.Window == 0 &&
			(shared == m.KVHeads || !slices.Contains(kinds, fullLayer)):
			kinds = append(kinds, fullLayer)
			m.KVHeads, m.Attention = shared, ""
			m.Complete()
		default:
			return []string{fmt.Sprintf("%d heads and a window of %d", a.Heads, a.Window)}
		}
	}
	return kinds
}

// compress gives a model the groups of DeepSeek-V4's compressed attention: in a layer of ratio r
// one entry stands for r tokens, with r = 0 there is none, and where r is 4 an indexer has a key
// for each of them; ratios behind the last layer are those of layers that predict ahead.
func (f *fields) compress(m *Model, ratios []int) error {
	if len(ratios) < m.Layers {
		return fmt.Errorf("%d compress_ratios for %d layers", len(ratios), m.Layers)
	}
	m.Attention, m.csaWindow, m.Groups = CSA, f.num("sliding_window"), []Group{}
	count := map[int]int{}
	for _, r := range ratios[:m.Layers] {
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
	if dim := f.num("index_head_dim"); count[indexRatio] > 0 && dim > 0 {
		f.num("index_topk")
		m.index = indexer{layers: count[indexRatio], dim: dim, every: indexRatio}
	}
	if len(m.Groups) == 0 {
		return errors.New("no layer keeps anything of a token")
	}
	return nil
}

// indexRatio is that of the layers with an indexer: those of larger ratios have so few entries that
// all are looked at.
const indexRatio = 4
