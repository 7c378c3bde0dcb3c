package params

import (
	"cmp"
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"kvbench/kvbench/result"
	"kvbench/workloads"
	"kvbench/workloads/model"
	"kvbench/workloads/profile"
)

//go:embed accepted.txt
var acceptedText string

// key is one leaf of the YAML file outside of parameters.
type key struct {
	name     string // dotted
	min, max float64
	to       any    // where the value goes; its type says what may stand there, see set
	why      string // it is accepted without effect, and why
}

// Targets of keys whose unit or meaning is not the field's.
type (
	seconds      time.Duration
	millis       time.Duration
	distribution bool // uniform, or zipfian
)

func (s *seconds) UnmarshalYAML(n *yaml.Node) error {
	return scaled(n, (*time.Duration)(s), time.Second)
}

func (m *millis) UnmarshalYAML(n *yaml.Node) error {
	return scaled(n, (*time.Duration)(m), time.Millisecond)
}

// scaled reads a number of some unit of time; fractions are fine.
func scaled(n *yaml.Node, to *time.Duration, unit time.Duration) error {
	var x float64
	err := n.Decode(&x)
	*to = time.Duration(x * float64(unit))
	return err
}

func (d *distribution) UnmarshalYAML(n *yaml.Node) error {
	*d = n.Value == "uniform"
	return nil
}

// draft is what the keys of a file write to. There is one to check a file on, which is thrown away,
// and one that becomes the profile: between the two stand the benchmark's keys.
type draft struct {
	profile profile.Profile
	timing  [3]time.Duration // per generated token; see generationModes
}

var generationModes = []string{"none", "fast", "realistic"}

// newDraft has the defaults of the Python benchmark, which are MLPerf's users.
func newDraft() *draft {
	return &draft{
		profile: profile.Default(),
		timing:  [3]time.Duration{0, 2 * time.Millisecond, 30 * time.Millisecond},
	}
}

// big bounds what is only called positive, so that products of two stay inside 64 bits.
const big = math.MaxInt32

// keys is every leaf, bound to the fields of a draft. Names and order are those of the
// configuration of the Python benchmark, whose files load unchanged: what it configures and this
// suite does not have is accepted without effect, and -help-parameters and the run's warnings say
// so.
func (d *draft) keys() []key {
	var list []key
	add := func(section string, keys ...key) {
		for _, k := range keys {
			k.name = section + "." + k.name
			list = append(list, k)
		}
	}
	p := &d.profile
	for i := range p.Templates {
		t := &p.Templates[i]
		add("user_templates."+t.Name, key{"context_range", 1, big, &t.Context, ""},
			key{"generation_range", 1, big, &t.Generate, ""},
			key{"think_time_range", 0, day.Seconds(), &t.Think, ""})
	}
	for i, mode := range generationModes {
		add("generation_timing", key{mode, 0, 3600, (*seconds)(&d.timing[i]), ""})
	}
	// Interactive first: the classes count from the least urgent one.
	for class := range slices.Backward(p.QoS[:]) {
		q := &p.QoS[class]
		add("qos_profiles."+workloads.Class(class).String(),
			key{"target_latency_p95_ms", 0.001, 1e9, (*millis)(&q.P95), ""},
			key{"target_latency_p99_ms", 0.001, 1e9, (*millis)(&q.P99), ""},
			key{"target_latency_p999_ms", 0.001, 1e9, (*millis)(&q.P999), ""},
			key{"target_latency_p9999_ms", 0.001, 1e9, (*millis)(&q.P9999), ""},
			key{"priority", 0, big, &q.Priority, ""})
	}
	add("qos_distribution", key{"interactive_probability", 0, 1, &p.InteractiveShare, ""},
		key{"responsive_threshold", 0, 1, &p.ResponsiveThreshold, ""})
	add("prefix_cache", key{"system_prompt_hit_probability", 0, 1, &p.SystemPromptShare, ""},
		key{"system_prompt_tokens", 1, big, &p.SystemPromptTokens, ""})
	add("rag", key{"chunk_size_tokens", 1, big, &p.RAG.ChunkTokens, ""},
		key{"top_k_chunks", 1, 1024, &p.RAG.TopK, ""},
		key{"max_chunk_bytes", 1, 1 << 50, &p.RAG.MaxChunkBytes, ""},
		key{"max_documents", 0, big, &p.RAG.MaxDocuments, ""},
		key{"large_model_doc_tokens_min", 1, big, &p.RAG.LargeModelTokens[0], ""},
		key{"large_model_doc_tokens_max", 1, big, &p.RAG.LargeModelTokens[1], ""},
		key{"small_model_doc_tokens_min", 1, big, &p.RAG.SmallModelTokens[0], ""},
		key{"small_model_doc_tokens_max", 1, big, &p.RAG.SmallModelTokens[1], ""},
		key{"request_probability", 0, 1, &p.RAG.Share, ""},
		key{"retrieval_distribution", 0, 0, (*distribution)(&p.RAG.Uniform), ""})
	add("conversation", key{"max_turns_per_conv", 1, 100000, &p.MaxTurns, ""},
		key{"end_conversation_probability", 0, 1, &p.NewConversation, ""})
	add("decode", key{"batch_size", 1, big, &p.DecodeBatch, ""})
	add("sharegpt", key{"max_context_tokens", 1, big, &p.ShareGPT.MaxContext, ""},
		key{"max_generation_tokens", 1, big, &p.ShareGPT.MaxGenerate, ""},
		key{"chars_per_token_estimate", 1, big, &p.ShareGPT.CharsPerToken, ""})
	for line := range strings.Lines(acceptedText) {
		columns := strings.Split(strings.TrimSpace(line), " | ")
		if len(columns) != 3 {
			continue // a comment
		}
		k := key{columns[0], 0, math.MaxFloat64, new(float64), columns[2]}
		if columns[1] == "whole" {
			k.to = new(int)
		}
		list = append(list, k)
	}
	return list
}

// modelKeys are the keys of one model in model_configs. Zero is what is missing, so that 0 is told
// by the model's own rules, together with what belongs to it.
func modelKeys(section string, m *model.Model) []key {
	at := section + "."
	return []key{
		{at + "name", 0, 0, &m.Name, ""}, {at + "num_layers", 0, big, &m.Layers, ""},
		{at + "hidden_dim", 0, big, &m.Hidden, ""}, {at + "num_heads", 0, big, &m.Heads, ""},
		{at + "kv_heads", 0, big, &m.KVHeads, ""}, {at + "dtype", 0, 0, &m.DType, ""},
		{at + "attention_type", 0, 0, (*string)(&m.Attention), ""},
		{at + "kv_lora_rank", 0, big, &m.KVLoraRank, ""},
		{at + "qk_rope_head_dim", 0, big, &m.QKRopeHeadDim, ""},
		{at + "kv_dim_per_head", 0, big, &m.HeadDim, ""},
	}
}

// index finds the keys of a draft by their dotted names.
func (d *draft) index() map[string]*key {
	index := make(map[string]*key)
	for _, k := range d.keys() {
		index[k.name] = &k
	}
	return index
}

// shape is what the type of a target wants to read: scalars of which types, and how many in a list
// (1: no list, 0: any number).
func (k *key) shape() (wanted string, tags []string, count int) {
	switch k.to.(type) {
	case *string, *distribution:
		return "text", []string{"!!str"}, 1
	case *int, *int64:
		return "a whole number", []string{"!!int"}, 1
	case *[2]int:
		return "a list of two whole numbers", []string{"!!int"}, 2
	case *[]int:
		return "a list of whole numbers", []string{"!!int"}, 0
	case *[2]float64:
		return "a list of two numbers", []string{"!!int", "!!float"}, 2
	}
	return "a number", []string{"!!int", "!!float"}, 1
}

// set reads the value, checks type and limits, and stores it. The error completes "must be …". The
// decoder alone would take 1.5 for a whole number, and true for text.
func (k *key) set(n *yaml.Node) error {
	wanted, tags, count := k.shape()
	items := []*yaml.Node{n}
	if count != 1 {
		if items = n.Content; n.Kind != yaml.SequenceNode || count > 0 && len(items) != count {
			return errors.New(wanted + ", given " + given(n))
		}
	}
	xs := make([]float64, len(items))
	for i, item := range items {
		item = follow(item)
		fits := item.Kind == yaml.ScalarNode && slices.Contains(tags, item.Tag)
		if fits && item.Tag != "!!str" {
			fits = item.Decode(&xs[i]) == nil && !math.IsNaN(xs[i]) && !math.IsInf(xs[i], 0)
		}
		switch low, high := formatFloat(k.min), formatFloat(k.max); {
		case !fits:
			return errors.New(wanted + ", given " + given(item))
		case item.Tag == "!!str" || xs[i] >= k.min && xs[i] <= k.max:
		case k.max >= big:
			return fmt.Errorf("at least %s, given %s", low, item.Value)
		default:
			return fmt.Errorf("in %s…%s, given %s", low, high, item.Value)
		}
	}
	if count == 2 && xs[0] > xs[1] {
		return fmt.Errorf("[low, high] with low at most high, given %s", nodeText(n))
	}
	return n.Decode(k.to)
}

// given is a value in a message.
func given(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.MappingNode:
		return "a mapping"
	case n.Kind == yaml.ScalarNode && n.Tag == "!!null":
		return "nothing"
	case n.Kind == yaml.ScalarNode && n.Tag == "!!str":
		return strconv.Quote(n.Value)
	}
	return nodeText(n)
}

// profile builds the users' profile: the defaults, then the benchmark's keys, then the file's.
func (r *resolver) profile() {
	d := newDraft()
	targets := d.index()
	for _, c := range append(r.benchKeys(), r.file.keys...) {
		k, text := targets[c.name], nodeText(c.value)
		if err := k.set(c.value); err != nil { // a benchmark's: those of the file have been checked
			r.bad = append(r.bad, Violation{Name: c.name, Required: err.Error(), Given: text,
				Origin: c.origin})
			continue
		}
		p := result.Parameter{Name: c.name, Value: text, Origin: c.origin.String()}
		i := slices.IndexFunc(r.v.profiles,
			func(old result.Parameter) bool { return old.Name == c.name })
		if i < 0 {
			r.v.profiles = append(r.v.profiles, p)
		} else {
			r.v.profiles[i] = p // the file wins over the benchmark
		}
	}
	r.v.Profile = d.profile
	r.v.GenerationTime = d.timing[slices.Index(generationModes, r.v.GenerationMode)]
	r.v.Models, r.v.Notes = r.file.models, r.file.notes
	slices.SortStableFunc(r.v.Notes, func(a, b Note) int { return cmp.Compare(a.Line, b.Line) })
	// Rules between keys, such as a range that has to rise, are those of the profile itself.
	for _, err := range d.profile.Validate() {
		text := err.Error()
		if len(r.file.keys) > 0 {
			// only the whole profile is wrong: there is no line to name
			text = r.file.path + ": " + text
		}
		r.bad = append(r.bad, Violation{Text: text})
	}
}

// benchKeys are the profile keys among the benchmark's settings, as texts that a file could hold: a
// benchmark can set nothing that a person could not.
func (r *resolver) benchKeys() (keys []configKey) {
	for _, name := range slices.Sorted(maps.Keys(r.bench)) {
		if find(name) != nil {
			continue
		}
		value := new(yaml.Node)
		if err := yaml.Unmarshal([]byte(r.bench[name]), value); err == nil &&
			len(value.Content) == 1 {
			value = value.Content[0]
		}
		keys = append(keys, configKey{name, value, Origin{FromBenchmark, r.in.Bench.Name}})
	}
	return keys
}
