package model

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Find returns the model of the given key. It searches extra before the built-in models, so that a user
// can redefine a key. A name that ends in .json, or names a file or a directory with a config.json, is
// read as a Hugging Face configuration. Find does not check whether such a model can be stored in the
// type that its checkpoint declares: Model.In does.
func Find(keyOrPath string, extra []Model) (Model, error) {
	known := slices.Concat(extra, BuiltIn())
	keys := make([]string, 0, len(known))
	for _, m := range known {
		if m.Key == keyOrPath {
			return m, m.Validate()
		}
		keys = append(keys, m.Key)
	}
	info, err := os.Stat(keyOrPath)
	switch {
	case err == nil && info.IsDir():
		return ReadConfig(filepath.Join(keyOrPath, "config.json"))
	case err == nil || strings.HasSuffix(keyOrPath, ".json"):
		return ReadConfig(keyOrPath)
	}
	return Model{}, fmt.Errorf("model %q is unknown: give one of %s, or the path of a Hugging Face"+
		" config.json", keyOrPath, strings.Join(keys, ", "))
}

// maxModelConfig is the number of bytes read of a config.json. Real files have a few KiB. A larger file
// is cut and then fails as JSON.
const maxModelConfig = 16 << 20

// ReadConfig reads a Hugging Face config.json. A multimodal model has the dimensions of its text model.
// A second file may have the type of cached numbers: hf_quant_config.json next to config.json, or
// X_hf_quant_config.json next to X_config.json.
func ReadConfig(path string) (Model, error) {
	text, err := readAll(path)
	quant, quantErr := readAll(strings.TrimSuffix(path, "config.json") + quantFile)
	if err == nil && !errors.Is(quantErr, fs.ErrNotExist) {
		err = quantErr
	}
	if err != nil {
		return Model{}, fmt.Errorf("read model configuration: %w", err)
	}
	m, err := parseModelConfig(text, quant)
	if err != nil {
		return Model{}, fmt.Errorf("model configuration %s: %w", path, err)
	}
	m.Key, m.Name = path, cmp.Or(m.Name, filepath.Base(path))
	return m, nil
}

func readAll(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxModelConfig))
}

// parseModelConfig returns the model, without a key, from the texts of a config.json and a
// hf_quant_config.json. The model is valid, except perhaps its type of numbers, see Model.In.
func parseModelConfig(text, quant []byte) (Model, error) {
	levels, err := parseLevels(text)
	if err != nil {
		return Model{}, err
	}
	f := levels[0]
	m, err := f.model()
	for _, l := range levels {
		if m.Window == 0 {
			m.Window = l.num("max_position_embeddings")
		}
		dtype := strings.TrimPrefix(cmp.Or(l.text("dtype"), l.text("torch_dtype")), "torch.")
		m.DType = cmp.Or(m.DType, strings.TrimPrefix(dtype, "auto"))
		// The keys of the outermost object have precedence.
		m.Name = cmp.Or(l.text("_name_or_path"), append(l.texts("architectures"), m.Name)[0],
			l.text("model_type"))
	}
	if err == nil {
		err = f.apply(&m)
	}
	if err == nil {
		err = m.loop(f.num("total_ut_steps"))
	}
	switch {
	case f.err != nil: // the value counts as 0, which may have caused the other error
		err = f.err
	case err == nil:
		err = f.refusal(mayAffectSize)
		for _, l := range levels[1:] {
			err = cmp.Or(err, l.refusal(changes))
		}
	}
	if err != nil {
		return Model{}, err
	}
	dims := m
	dims.DType = ""
	if err := dims.Validate(); err != nil {
		return Model{}, err
	}
	return m, m.declare(levels, quant)
}

// usesLatents matches the keys that turn multi-head latent attention on or off.
var usesLatents = regexp.MustCompile(`^((use|enable|is|with)_)?(mla|latent_attention)(_enabled)?$`)

// model returns the model with the dimensions in f.
func (f *fields) model() (Model, error) {
	m := Model{Layers: f.num("num_hidden_layers", "n_layer", "n_layers"),
		Hidden:  f.num("hidden_size", "n_embd", "n_embed", "d_model"),
		Heads:   f.num("num_attention_heads", "n_head", "n_heads"),
		KVHeads: f.num("num_key_value_heads", "num_attention_groups", "num_kv_heads", "n_kv_heads"),
		HeadDim: f.num("head_dim", "attention_head_dim", "kv_channels"), ValueDim: f.num("v_head_dim"),
		KVLoraRank: f.num("kv_lora_rank"), QKRopeHeadDim: f.num("qk_rope_head_dim")}
	if one, newer := f.flag("multi_query"), f.flag("new_decoder_architecture"); one && !newer {
		m.KVHeads = 1 // Falcon ignores num_kv_heads
	}
	// A layer of LongCat has two attentions with a cache each.
	layers := f.num("num_layers")
	if strings.HasPrefix(f.text("model_type"), "longcat_flash") {
		layers *= 2
		m.Layers = cmp.Or(m.Layers, layers)
	}
	m.Layers = cmp.Or(m.Layers, len(f.text("hybrid_override_pattern")),
		len(f.texts("layers_block_type")))
	mla := false
	for key := range f.values {
		if !usesLatents.MatchString(key) {
			continue
		}
		on := f.flag(key)
		if mla = mla || on; !on {
			m.KVLoraRank, m.ValueDim = 0, 0 // the class of the file has them, the model does not use them
		}
	}
	latent := m.KVLoraRank != 0
	var missing []error
	need := func(key string, there bool) {
		if !there {
			missing = append(missing, fmt.Errorf("field %s is missing or 0", key))
		}
	}
	need("num_hidden_layers", m.Layers != 0)
	need("hidden_size", m.Hidden != 0 || m.HeadDim != 0 || latent)
	need("num_attention_heads", m.Heads != 0 || m.HeadDim != 0 && m.KVHeads != 0 || latent)
	need("kv_lora_rank", !mla || latent)
	need("qk_rope_head_dim", !latent || f.values["qk_rope_head_dim"] != nil) // 0 is a valid value
	if layers > 0 && layers != m.Layers {
		missing = append(missing, fmt.Errorf("num_layers is %d: which of them and of %d have a "+
			"cache is not known here", f.num("num_layers"), m.Layers))
	}
	if latent {
		m.Attention = MLA
	}
	m.Complete()
	return m, errors.Join(missing...)
}

// quantFile is the file in which ModelOpt wrote quantized types before it wrote them into config.json.
const quantFile = "hf_quant_config.json"

// declare sets the type of cached numbers that the checkpoint declares, as vLLM and SGLang do.
// config.json has the declaration, or the second file if config.json has no quantization_config.
func (m *Model) declare(levels []*fields, second []byte) error {
	for _, l := range levels {
		if q := l.sub("quantization_config"); len(q.values) > 0 {
			m.follow(q, "quantization_config")
			return nil
		}
	}
	if len(second) == 0 {
		return nil
	}
	file, err := newFields(second)
	if err != nil {
		return fmt.Errorf("%s next to it: %w", quantFile, err)
	}
	m.follow(file.sub("quantization"), quantFile)
	return nil
}

// schemes maps the number of bits and the type that a kv_cache_scheme object has to a type of cached
// numbers.
var schemes = map[string]string{"8float": "fp8", "8int": "int8", "4float": "nvfp4"}

// follow sets the type that q declares, if any. Model.In refuses an unknown type.
func (m *Model) follow(q *fields, where string) {
	for _, key := range slices.Sorted(maps.Keys(q.values)) {
		if !stores.MatchString(key) || slices.Contains(offValues, string(q.values[key])) {
			continue
		}
		scheme := q.sub(key)
		dtype := cmp.Or(schemes[scheme.text("num_bits")+scheme.text("type")],
			strings.ToLower(q.text(key)))
		if !slices.Contains([]string{"", "null", "none", "auto"}, dtype) {
			m.DType, m.declared = dtype, dtype
			m.StoredAs = fmt.Sprintf("%s (declared by %s: %s)", dtype, where, key)
		}
	}
}
