package params

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"kvbench/workloads"
)

// modelKeys are the keys of one model in model_configs.
var modelKeys = []string{"name", "num_layers", "hidden_dim", "num_heads", "kv_heads", "dtype", "attention_type",
	"kv_lora_rank", "qk_rope_head_dim", "kv_dim_per_head"}

// modelSection reads model_configs: models to add, or to redefine.
func (c *configFile) modelSection(n *yaml.Node) {
	pairs, ok := c.mapping(n, sectionModels)
	if !ok {
		return
	}
	for _, p := range pairs {
		c.model(p.key, p.value)
	}
}

func (c *configFile) model(key, n *yaml.Node) {
	section := sectionModels + "." + key.Value
	pairs, ok := c.mapping(n, section)
	if !ok {
		return
	}
	m := workloads.Model{Key: key.Value, Name: key.Value}
	problems := len(c.bad)
	for _, p := range pairs {
		name := p.key.Value
		if !slices.Contains(modelKeys, name) {
			c.unknown(p.key, section, modelKeys)
			continue
		}
		k := yamlKey{name: section + "." + name, kind: keyInt, max: math.MaxInt32}
		if name == "name" || name == "dtype" || name == "attention_type" {
			k.kind = keyText
		}
		v, err := k.read(p.value)
		if err != nil {
			c.badAt(p.value, "%s must be %v", k.name, err)
			continue
		}
		setModel(&m, name, v)
		c.notes = append(c.notes, Note{Key: k.name, Line: p.key.Line, Acts: true})
	}
	if len(c.bad) > problems {
		return // what is missing after an error is no news
	}
	complete(&m)
	if err := m.Validate(); err != nil {
		for line := range strings.SplitSeq(err.Error(), "\n") {
			c.badAt(key, "%s: %s", section, strings.TrimPrefix(line, fmt.Sprintf("model %q: ", m.Key)))
		}
		return
	}
	c.models = append(c.models, m)
}

func setModel(m *workloads.Model, name string, v keyValue) {
	switch name {
	case "name":
		m.Name = v.text
	case "dtype":
		m.DType = v.text
	case "attention_type":
		m.Attention = workloads.AttentionType(strings.ToLower(v.text))
	case "num_layers":
		m.Layers = v.int()
	case "hidden_dim":
		m.Hidden = v.int()
	case "num_heads":
		m.Heads = v.int()
	case "kv_heads":
		m.KVHeads = v.int()
	case "kv_lora_rank":
		m.KVLoraRank = v.int()
	case "qk_rope_head_dim":
		m.QKRopeHeadDim = v.int()
	case "kv_dim_per_head":
		m.HeadDim = v.int()
	}
}

// complete fills what a file may leave out: without kv_heads every head has its own, and the numbers tell MHA from GQA.
func complete(m *workloads.Model) {
	if m.Attention == workloads.MLA {
		return
	}
	if m.KVHeads == 0 {
		m.KVHeads = m.Heads
	}
	if m.Attention == "" {
		m.Attention = workloads.GQA
		if m.KVHeads == m.Heads {
			m.Attention = workloads.MHA
		}
	}
}
