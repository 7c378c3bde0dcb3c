package model

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Find returns the model of that key, looking at extra before the built-in ones, so that a
// user can redefine a key. A name that ends in .json, or names a file or a directory with a
// config.json, is read as a Hugging Face configuration.
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

// huggingFace holds the fields of a config.json that matter here; 0 is not told.
type huggingFace struct {
	Model
	layerFields
	NameOrPath    string       `json:"_name_or_path"`
	ModelType     string       `json:"model_type"`
	Architectures []string     `json:"architectures"`
	TorchDType    string       `json:"torch_dtype"`
	NewDType      string       `json:"dtype"` // what newer versions of the library write
	Text          *huggingFace `json:"text_config"`
}

// maxModelConfig bounds what is read of a file that claims to be a config.json; real ones have a
// few KiB, and what is cut here is no JSON.
const maxModelConfig = 16 << 20

// ReadConfig reads a Hugging Face config.json. The dimensions of a multimodal model are those
// of its text_config.
func ReadConfig(path string) (Model, error) {
	f, err := os.Open(path)
	if err != nil {
		return Model{}, fmt.Errorf("read model configuration: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxModelConfig))
	if err != nil {
		return Model{}, fmt.Errorf("read model configuration %s: %w", path, err)
	}
	m, err := parseModelConfig(text)
	if err != nil {
		return Model{}, fmt.Errorf("model configuration %s: %w", path, err)
	}
	m.Key, m.Name = path, cmp.Or(m.Name, filepath.Base(path))
	return m, nil
}

// parseModelConfig turns the text of a config.json into a valid model without a key.
func parseModelConfig(text []byte) (Model, error) {
	var outer huggingFace
	if err := json.Unmarshal(text, &outer); err != nil {
		return Model{}, err
	}
	c := outer
	if c.Layers == 0 && outer.Text != nil {
		c = *outer.Text
	}
	latent := c.KVLoraRank != 0
	var missing []error
	for _, field := range []struct {
		name    string
		missing bool
	}{
		{"num_hidden_layers", c.Layers == 0 && c.Pattern == ""},
		{"hidden_size", c.Hidden == 0 && c.HeadDim == 0 && !latent},
		{"num_attention_heads", c.Heads == 0 && (c.HeadDim == 0 || c.KVHeads == 0) && !latent},
	} {
		if field.missing {
			missing = append(missing, fmt.Errorf("field %s is missing", field.name))
		}
	}
	if len(missing) > 0 {
		return Model{}, errors.Join(missing...)
	}
	m := c.Model
	m.Window = cmp.Or(m.Window, outer.Window)
	m.DType = dtypeOf(c.NewDType, c.TorchDType, outer.NewDType, outer.TorchDType)
	// What tells most about the model.
	m.Name = cmp.Or(outer.NameOrPath, append(outer.Architectures, "")[0], outer.ModelType)
	if m.KVLoraRank > 0 {
		m.Attention = MLA
	}
	m.Complete()
	if c.Pattern != "" && c.Layers == 0 {
		m.Layers = len(c.Pattern)
	}
	if err := c.apply(&m); err != nil {
		return Model{}, err
	}
	return m, m.Validate()
}

// dtypeOf returns the first dtype that is given, inner configuration first; "auto" leaves the
// choice to us.
func dtypeOf(names ...string) string {
	for _, name := range names {
		if name != "" && name != "auto" {
			return strings.TrimPrefix(name, "torch.")
		}
	}
	return ""
}
