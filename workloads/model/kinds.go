package model

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// The kinds of layers, with the names of layer_types.
const (
	fullLayer      = "full_attention"
	slidingLayer   = "sliding_attention"
	chunkedLayer   = "chunked_attention"
	linearLayer    = "linear_attention"
	lightningLayer = "lightning_attention" // its state has no convolution
	mambaLayer     = "mamba"
	noLayer        = "none" // keeps nothing of text
)

// kindNames maps the names and numbers of kinds, in all keys that have them, to the kinds.
var kindNames = map[string]string{
	fullLayer: fullLayer, "attention": fullLayer, "*": fullLayer, "G": fullLayer,
	"deepseek_sparse_attention": fullLayer, // see indexer for the rest
	slidingLayer:                slidingLayer, "L": slidingLayer,
	chunkedLayer: chunkedLayer, linearLayer: linearLayer, lightningLayer: lightningLayer,
	mambaLayer: mambaLayer, "M": mambaLayer,
	"hybrid_layer_pattern 0": fullLayer, "hybrid_layer_pattern 1": slidingLayer, // MiMo-V2
	"attn_type_list 1": fullLayer, // MiniMax
	noLayer:            noLayer, "mlp": noLayer, "moe": noLayer, "-": noLayer, "E": noLayer,
}

// kinds returns the type of every layer and the key it came from. It returns nil if the file does
// not distinguish layers. An unknown type is an error: a guess may make entries too small, and then
// the drive looks too fast.
func (f *fields) kinds(m *Model, window int) (key string, kinds []string, err error) {
	n, shared := m.Layers, f.num("num_kv_shared_layers")
	kimi := f.sub("linear_attn_config")
	attn, kda := kimi.nums("full_attn_layers"), kimi.nums("kda_layers")
	sharers := f.num("cla_share_factor") // Hunyuan: the number of layers that share one cache
	if !f.flag("use_cla") {
		sharers = 0
	}
	letters := cmp.Or(f.text("_sliding_window_pattern"), f.text("global_attn_every_n_layers"),
		f.text("sliding_window_pattern"))
	if window == 0 {
		letters = ""
	}
	// The first key with types, or with an error, decides. All keys are read, because a key that is not read counts as unknown.
	add := func(from string, types []string, problem error) {
		if key == "" && (len(types) > 0 || problem != nil) {
			key, kinds, err = from, slices.Clone(types), problem
		}
	}
	add("hybrid_override_pattern", strings.Split(f.text("hybrid_override_pattern"), ""), nil)
	for _, list := range []string{"layers_block_type", "layer_types", "hybrid_layer_pattern", "attn_type_list"} {
		add(list, f.texts(list), nil)
	}
	add(f.puzzle(m))
	// Kimi. Some files count layers from 0 and some from 1: only the counts are valid.
	add("linear_attn_config", slices.Concat(slices.Repeat([]string{fullLayer}, len(attn)),
		slices.Repeat([]string{linearLayer}, len(kda))), nil)
	add(f.layersListed(n, "attn_layer_indices", fullLayer, mambaLayer))  // Bamba
	add(f.layersListed(n, "cross_attention_layers", noLayer, fullLayer)) // Mllama, for images
	add(layersByExactInterval(n, "cla_share_factor", sharers, noLayer))
	add(layersByExactInterval(n, "layer_group_size", f.num("layer_group_size"), lightningLayer)) // Ling-linear
	add("full_attention_interval", layersByInterval(n, f.num("full_attention_interval"), linearLayer), nil)
	add("sliding_window_pattern", layersByPattern(n, letters), nil)
	add("num_kv_shared_layers", layersByInterval(n, min(1, shared), fullLayer), nil)
	if key == "linear_attn_config" && shared > 0 {
		return "", nil, errors.New(key + " with num_kv_shared_layers is not supported")
	}
	for i, name := range kinds {
		if kinds[i] = cmp.Or(kindNames[key+" "+name], kindNames[name]); kinds[i] == "" {
			return "", nil, fmt.Errorf("%s has %q: what such a layer keeps of a token is not "+
				"known here", key, name)
		}
	}
	// Some files also list the layers of multi-token prediction (MTP); drop them.
	if len(kinds) == n+max(0, f.num("num_nextn_predict_layers")) {
		kinds = kinds[:n]
	}
	if kinds != nil && len(kinds) != n {
		return "", nil, fmt.Errorf("%s: %d layers have a type, num_hidden_layers is %d", key,
			len(kinds), n)
	}
	return key, kinds, err
}

// layersByInterval returns the types of n layers in groups of groupSize. The last layer of each group has full
// attention. The type of the other layers is otherType. It returns nil if groupSize is 0.
func layersByInterval(n, groupSize int, otherType string) (kinds []string) {
	for i := 0; groupSize > 0 && i < n; i++ {
		kinds = append(kinds, otherType)
		if (i+1)%groupSize == 0 {
			kinds[i] = fullLayer
		}
	}
	return kinds
}

// layersByExactInterval is like layersByInterval, but rejects a layer count that is not a multiple
// of the group size, because engines treat the remainder differently.
func layersByExactInterval(n int, from string, many int, others string) (
	key string, types []string, err error,
) {
	if many > 0 && n%many > 0 {
		err = fmt.Errorf("%s %d does not divide num_hidden_layers %d; engines treat the remainder "+
			"differently", from, many, n)
	}
	return from, layersByInterval(n, many, others), err
}

// layersByPattern returns the types of n layers. A text that is a number is the group size of
// layersByInterval. Otherwise each letter of the text is the type of one layer, and the text repeats.
func layersByPattern(n int, text string) (kinds []string) {
	if many, err := strconv.Atoi(text); err == nil {
		return layersByInterval(n, many, slidingLayer)
	}
	for i := 0; text != "" && i < n; i++ {
		kinds = append(kinds, string(text[i%len(text)]))
	}
	return kinds
}

// layersListed returns n layer types: kind for each layer that the key lists, others for the other
// layers.
func (f *fields) layersListed(n int, key, kind, others string) (from string, types []string, err error) {
	listed := f.nums(key)
	types = slices.Repeat([]string{others}, n*min(1, len(listed))) // none without the key
	for _, i := range listed {
		if i < 0 || i >= n {
			return key, nil, fmt.Errorf("%s lists layer %d, but the model has %d layers", key, i, n)
		}
		types[i] = kind
	}
	return key, types, nil
}

// maxLayers is far above the layers of any real model, which are some hundreds at most.
const maxLayers = 1 << 17

// apply sets what the layers of the model keep.
func (f *fields) apply(m *Model) error {
	// Validate reports this error. Return now, so that no loop runs over a huge layer count.
	if m.Layers < 1 || m.Layers > maxLayers {
		return nil
	}
	if ratios := f.nums("compress_ratios"); len(ratios) > 0 {
		return f.compress(m, ratios)
	}
	window := f.num("sliding_window", "sliding_window_size")
	if f.values["use_sliding_window"] != nil && !f.flag("use_sliding_window") {
		window = 0 // Qwen files give a window even when it is off
	}
	key, kinds, err := f.kinds(m, window)
	if err != nil {
		return err
	}
	// Layers that use the cache of earlier layers keep nothing (Gemma-3n).
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
	other := f.sub("attention_other_setting") // Step-3.5's layers with a window
	// Gemma-4's full layers have fewer and longer heads than its layers with a window.
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
	// States are reported and not counted in entries: engines differ in how many they store. state
	// is called even for absent kinds, so that their keys count as read.
	for _, kind := range []string{linearLayer, lightningLayer, mambaLayer} {
		bytes, err := f.state(kind, m)
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

// loop multiplies the layers of a model that runs all of them several times (Ouro): each run has a
// cache of its own.
func (m *Model) loop(times int) error {
	if times < 2 {
		return nil
	}
	if m.stateLayers > 0 || m.index.layers > 0 || m.Attention == CSA {
		return errors.New("total_ut_steps: how often such layers keep something of a token is not known here")
	}
	m.Layers *= times
	for i := range m.Groups {
		m.Groups[i].Layers *= times
	}
	return nil
}

// state returns the bytes of one layer's recurrent state. The state has a matrix per head. Linear
// attention and Mamba-2 also keep the last k-1 inputs of a convolution of width k, in bfloat16 as vLLM
// does (vllm/model_executor/layers/mamba/mamba_utils.py). The matrix has the model's data type, or the
// type of mamba_ssm_dtype. For Kimi it is float32.
func (f *fields) state(kind string, m *Model) (bytes float64, err error) {
	num := func(f *fields, keys ...string) float64 {
		n := f.num(keys...)
		if n < 1 && err == nil {
			err = fmt.Errorf("%s layers need %s, but it is missing or 0", kind,
				strings.Join(keys, " or "))
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
	if kind == linearLayer && f.values["linear_num_key_heads"] == nil &&
		(f.values["mamba_num_heads"] != nil || f.values["mamba_n_heads"] != nil) {
		kind = mambaLayer // transformers 5 calls these layers linear attention, too
	}
	switch kimi := f.sub("linear_attn_config"); {
	case kind == lightningLayer:
		return float64(m.Heads) * float64(m.headDim()) * float64(m.headDim()) * size, err
	case kind == mambaLayer:
		heads := num(f, "mamba_num_heads", "mamba_n_heads")
		if f.text("mamba_d_head") == "auto" {
			f.values["mamba_d_head"] = fmt.Appendf(nil, "%.0f",
				num(f, "mamba_expand")*float64(m.Hidden)/max(1, heads))
		}
		inner := heads * num(f, "mamba_head_dim", "mamba_d_head")
		states := num(f, "ssm_state_size", "mamba_d_state")
		inputs := inner + 2*num(f, "n_groups", "mamba_n_groups")*states
		return inner*states*size + inputs*(num(f, "conv_kernel", "mamba_d_conv")-1)*2, err
	case len(kimi.values) > 0:
		dim := num(kimi, "head_dim")
		inner := num(kimi, "num_heads") * dim
		return inner*dim*4 + 3*inner*(num(kimi, "short_conv_kernel_size")-1)*2, err
	}
	keyHeads, dim := num(f, "linear_num_key_heads"), num(f, "linear_key_head_dim")
	values := num(f, "linear_num_value_heads") * num(f, "linear_value_head_dim")
	return values*dim*size + (2*keyHeads*dim+values)*(num(f, "linear_conv_kernel_dim")-1)*2, err
}

// indexer returns what the sparse-attention indexer stores. full is the number of full-attention
// layers.
func (f *fields) indexer(m *Model, full int) (indexer, error) {
	unknown := func(key string) (indexer, error) {
		return indexer{}, fmt.Errorf("%s: what its indexer keeps of a token is not known here", key)
	}
	// DeepSeek-V3.2 and GLM-5.
	if x := (indexer{dim: f.num("index_head_dim"), every: f.num("index_kpool")}); x.dim > 0 {
		types := f.texts("indexer_types")
		for _, t := range types {
			if t == "full" { // a shared indexer belongs to an earlier layer
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
	// MiniMax-M3. A layer with an enabled index value would store that value, too. Its size is unknown,
	// so such a model is refused.
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

// puzzle returns the layers of a model that Puzzle derived from another (Llama-Nemotron): groups of
// n_heads_in_group heads share keys and values, and some layers have no attention.
func (f *fields) puzzle(m *Model) (key string, types []string, err error) {
	var blocks []struct {
		Attention struct {
			Heads  int  `json:"n_heads_in_group"`
			NoOp   bool `json:"no_op"`
			Linear bool `json:"replace_with_linear"`
			Window int  `json:"window_length"`
		}
	}
	key = f.get(&blocks, "block_configs")
	for _, b := range blocks {
		a := b.Attention
		switch shared := m.Heads / max(1, a.Heads); {
		case a.NoOp || a.Linear:
			types = append(types, noLayer)
		case a.Heads > 0 && shared*a.Heads == m.Heads && a.Window == 0 &&
			(shared == m.KVHeads || !slices.Contains(types, fullLayer)):
			types = append(types, fullLayer)
			m.KVHeads, m.Attention = shared, ""
			m.Complete()
		default:
			return key, nil, fmt.Errorf("block_configs: a layer with %d heads per group and a window of "+
				"%d is not supported", a.Heads, a.Window)
		}
	}
	return key, types, nil
}

// compress sets the groups of DeepSeek-V4's compressed attention. A layer with ratio r > 0 stores one
// entry per r tokens. A layer with r = 0 stores none. A layer with r = 4 also stores one indexer key
// per entry. Ratios after the last layer belong to MTP layers. DeepSeek-V4.1 lists the layers that own
// a cache, each with indexer keys; the others read these.
func (f *fields) compress(m *Model, ratios []int) error {
	if len(ratios) < m.Layers {
		return fmt.Errorf("%d compress_ratios for %d layers", len(ratios), m.Layers)
	}
	m.Attention, m.csaWindow, m.Groups = CSA, f.num("sliding_window"), []Group{}
	count := map[int]int{}
	_, owners, err := f.layersListed(m.Layers, "kv_source_layer_ids", fullLayer, noLayer)
	for i, r := range ratios[:m.Layers] {
		switch {
		case r < 0 || r > 1<<20:
			return fmt.Errorf("a compress_ratio is %d, want 0 to %d", r, 1<<20)
		case len(owners) == 0 && r == 1:
			return errors.New("a compress_ratio of 1 without kv_source_layer_ids is one entry per token for " +
				"some engines and none for others")
		case len(owners) == 0 || owners[i] == fullLayer:
			count[r]++
		}
	}
	dim := f.num("index_head_dim")
	if len(owners) > 0 {
		m.ownerIndex = dim
		f.nums("index_source_layer_ids")
		if count[0] > 0 {
			err = errors.New("kv_source_layer_ids lists a layer with a compress_ratio of 0")
		}
	}
	for r, n := range count {
		if r > 0 {
			m.Groups = append(m.Groups, Group{Layers: n, Every: r})
		}
	}
	slices.SortFunc(m.Groups, func(a, b Group) int { return cmp.Compare(a.Every, b.Every) })
	f.num("index_topk")
	if len(owners) == 0 && count[indexedRatio] > 0 && dim > 0 {
		m.index = indexer{layers: count[indexedRatio], dim: dim, every: indexedRatio}
	}
	if err == nil && len(m.Groups) == 0 {
		err = errors.New("no layer keeps anything of a token")
	}
	return err
}

// indexedRatio is the ratio of the layers with an indexer. Layers with a larger ratio have so few
// entries that attention reads all of them.
const indexedRatio = 4
