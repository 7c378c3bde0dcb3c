package params

import (
	"cmp"
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

// key is one leaf of the YAML file outside of parameters.
type key struct {
	name     string // dotted
	min, max float64
	to       any    // where the value goes; its type says what may stand there, see set
	why      string // it is accepted without effect, and why
}

// Targets of keys whose unit or meaning is not the field's.
type (
	seconds struct{ to *time.Duration }
	millis  struct{ to *time.Duration }
	uniform struct{ to *bool } // a distribution's name
)

// draft is what the keys of a file write to.
type draft struct {
	profile profile.Profile
	timing  [3]time.Duration // per generated token; see generationModes
}

var generationModes = []string{"none", "fast", "realistic"}

func newDraft() *draft {
	return &draft{
		profile: profile.Default(),
		timing:  [3]time.Duration{0, 2 * time.Millisecond, 30 * time.Millisecond},
	}
}

// Why keys of the Python benchmark have no effect here.
const (
	fixedUsers = "the autoscaler begins with -num-users and keeps between 1 and 100000"
	fixedSteps = "the steps of the autoscaler's modes are fixed: choose one with " +
		"-autoscaler-mode, their pace with -autoscaler-interval"
	fixedFull = "saturation is measured per 100 MiB over the last rounds: " +
		"set how much of it is wanted with -target-saturation"
	noCUDA     = "this build has no CUDA tier"
	noPrefill  = "prefill takes no simulated time: the suite measures its I/O"
	fixedEvict = "tiers above the last are kept at 80 %, and an entry larger than that skips " +
		"the tier"
	noEvictCap  = "finding a victim takes constant time: there is nothing to bound"
	fixedLimits = "the limits are fixed"
	onePerUser  = "a user has one live conversation, so there are never more than users"
	allPrefixes = "the common system prompts are all kept as ordinary entries"
)

// big bounds what is only called positive.
const big = math.MaxInt32

// keys is every leaf, bound to the fields of a draft, in the order in which the documentation lists
// them.
func (d *draft) keys() []key {
	var list []key
	add := func(section string, keys ...key) {
		for _, k := range keys {
			k.name = section + "." + k.name
			list = append(list, k)
		}
	}
	idle := func(why, section string, to any, names string) {
		for name := range strings.FieldsSeq(names) {
			add(section, key{name, 0, math.MaxFloat64, to, why})
		}
	}
	aNumber, aWhole := new(float64), new(int) // where what has no effect goes
	p := &d.profile
	for i := range p.Templates {
		t := &p.Templates[i]
		add("user_templates."+t.Name, key{"context_range", 1, big, &t.Context, ""},
			key{"generation_range", 1, big, &t.Generate, ""},
			key{"think_time_range", 0, day.Seconds(), &t.Think, ""})
	}
	for i, mode := range generationModes {
		add("generation_timing", key{mode, 0, 3600, seconds{&d.timing[i]}, ""})
	}
	idle(noPrefill, "prefill_timing", aNumber, "none fast realistic")
	for class := workloads.Class(workloads.NumClasses - 1); ; class-- {
		q := &p.QoS[class]
		add("qos_profiles."+class.String(),
			key{"target_latency_p95_ms", 0.001, 1e9, millis{&q.P95}, ""},
			key{"target_latency_p99_ms", 0.001, 1e9, millis{&q.P99}, ""},
			key{"target_latency_p999_ms", 0.001, 1e9, millis{&q.P999}, ""},
			key{"target_latency_p9999_ms", 0.001, 1e9, millis{&q.P9999}, ""},
			key{"priority", 0, big, &q.Priority, ""})
		if class == 0 {
			break
		}
	}
	add("qos_distribution", key{"interactive_probability", 0, 1, &p.InteractiveShare, ""},
		key{"responsive_threshold", 0, 1, &p.ResponsiveThreshold, ""})
	idle(noEvictCap, "eviction", aWhole,
		"max_recursion_depth max_evictions_hard_cap max_evictions_min")
	idle(fixedEvict, "eviction", aNumber, "target_usage_ratio large_entry_limit_ratio")
	idle(noCUDA, "gpu_backend", aNumber, "memory_fraction free_memory_threshold")
	idle(noCUDA, "gpu_backend", aWhole, "max_eviction_attempts")
	idle(allPrefixes, "prefix_cache", aWhole, "min_prefix_length max_prefix_entries")
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
		key{"retrieval_distribution", 0, 0, uniform{&p.RAG.Uniform}, ""})
	idle(onePerUser, "conversation", aWhole, "max_conversations")
	add("conversation", key{"max_turns_per_conv", 1, 100000, &p.MaxTurns, ""},
		key{"end_conversation_probability", 0, 1, &p.NewConversation, ""})
	idle(fixedUsers, "autoscaler", aWhole, "min_users max_users")
	idle(fixedSteps, "autoscaler", aWhole, "consecutive_samples_required")
	idle(fixedSteps, "autoscaler", aNumber, "scale_up_factor scale_down_factor")
	add("decode", key{"batch_size", 1, big, &p.DecodeBatch, ""})
	add("sharegpt", key{"max_context_tokens", 1, big, &p.ShareGPT.MaxContext, ""},
		key{"max_generation_tokens", 1, big, &p.ShareGPT.MaxGenerate, ""},
		key{"chars_per_token_estimate", 1, big, &p.ShareGPT.CharsPerToken, ""})
	idle(fixedFull, "saturation_detection", aNumber,
		"read_latency_p95_threshold_ms write_latency_p95_threshold_ms")
	idle(fixedFull, "saturation_detection", aWhole, "queue_depth_threshold history_window_size")
	idle(fixedLimits, "validation_limits", aWhole,
		"max_users max_duration_seconds max_gpu_memory_gb max_cpu_memory_gb")
	return list
}

// modelKeys are the keys of one model in model_configs.
func modelKeys(m *model.Model) []key {
	return []key{
		{"name", 0, 0, &m.Name, ""}, {"num_layers", 0, big, &m.Layers, ""},
		{"hidden_dim", 0, big, &m.Hidden, ""}, {"num_heads", 0, big, &m.Heads, ""},
		{"kv_heads", 0, big, &m.KVHeads, ""}, {"dtype", 0, 0, &m.DType, ""},
		{"attention_type", 0, 0, (*string)(&m.Attention), ""},
		{"kv_lora_rank", 0, big, &m.KVLoraRank, ""},
		{"qk_rope_head_dim", 0, big, &m.QKRopeHeadDim, ""},
		{"kv_dim_per_head", 0, big, &m.HeadDim, ""},
	}
}

func names(keys []key) []string {
	list := make([]string, len(keys))
	for i, k := range keys {
		list[i] = k.name
	}
	return list
}

// index finds the keys of a draft by their dotted names.
func (d *draft) index() map[string]*key {
	index := make(map[string]*key)
	for _, k := range d.keys() {
		index[k.name] = &k
	}
	return index
}

// sections lists what may stand in a section, "" being the top of the file.
var sections = func() map[string][]string {
	children := make(map[string][]string)
	enter := func(section, child string) {
		if !slices.Contains(children[section], child) {
			children[section] = append(children[section], child)
		}
	}
	for _, k := range newDraft().keys() {
		parts := strings.Split(k.name, ".")
		for j, part := range parts {
			enter(strings.Join(parts[:j], "."), part)
		}
	}
	enter("", sectionModels)
	enter("", sectionParameters)
	for _, p := range rows {
		if p.inFile() {
			enter(sectionParameters, p.name)
		}
	}
	return children
}()

// kind is what the type of a target wants to read: whole numbers or any, one of them, two, or a
// list (0) of them.
func (k *key) kind() (wanted string, whole bool, count int) {
	switch k.to.(type) {
	case *int, *int64:
		return "a whole number", true, 1
	case *[2]int:
		return "a list of two whole numbers", true, 2
	case *[]int:
		return "a list of whole numbers", true, 0
	case *[2]float64:
		return "a list of two numbers", false, 2
	case *string, uniform:
		return "text", false, 1
	}
	return "a number", false, 1
}

// set reads the value, checks type and limits, and stores it. The error completes "must be …".
func (k *key) set(n *yaml.Node) error {
	switch to := k.to.(type) {
	case *string:
		if err := k.check(n, "!!str"); err != nil {
			return err
		}
		*to = n.Value
		return nil
	case uniform:
		if err := k.check(n, "!!str"); err != nil {
			return err
		}
		*to.to = n.Value == "uniform"
		return nil
	}
	xs, err := k.numbers(n)
	if err != nil {
		return err
	}
	switch to := k.to.(type) {
	case *int:
		*to = int(xs[0])
	case *int64:
		*to = int64(xs[0])
	case *float64:
		*to = xs[0]
	case seconds:
		*to.to = time.Duration(xs[0] * float64(time.Second))
	case millis:
		*to.to = time.Duration(xs[0] * float64(time.Millisecond))
	case *[2]int:
		*to = [2]int{int(xs[0]), int(xs[1])}
	case *[2]float64:
		*to = [2]float64(xs)
	case *[]int:
		*to = make([]int, len(xs))
		for i, x := range xs {
			(*to)[i] = int(x)
		}
	}
	return nil
}

// numbers reads one number or a list of them.
func (k *key) numbers(n *yaml.Node) ([]float64, error) {
	_, _, count := k.kind()
	if count == 1 {
		x, err := k.number(n)
		return []float64{x}, err
	}
	if n.Kind != yaml.SequenceNode || count > 0 && len(n.Content) != count {
		return nil, k.refuse(n)
	}
	var xs []float64
	for _, item := range n.Content {
		x, err := k.number(follow(item))
		if err != nil {
			return nil, err
		}
		xs = append(xs, x)
	}
	if count == 2 && xs[0] > xs[1] {
		return nil, fmt.Errorf("[low, high] with low at most high, given %s", nodeText(n))
	}
	return xs, nil
}

// number reads one number and checks the key's limits.
func (k *key) number(n *yaml.Node) (x float64, err error) {
	tags := []string{"!!int", "!!float"}
	if _, whole, _ := k.kind(); whole {
		tags = tags[:1]
	}
	if err := k.check(n, tags...); err != nil {
		return 0, err
	}
	if n.Decode(&x) != nil || math.IsNaN(x) || math.IsInf(x, 0) {
		return 0, k.refuse(n)
	}
	if x < k.min || x > k.max {
		if k.max >= big {
			return 0, fmt.Errorf("at least %s, given %s", formatFloat(k.min), n.Value)
		}
		return 0, fmt.Errorf("in %s…%s, given %s", formatFloat(k.min), formatFloat(k.max), n.Value)
	}
	return x, nil
}

// check wants a scalar with one of the tags.
func (k *key) check(n *yaml.Node, tags ...string) error {
	if n.Kind != yaml.ScalarNode || !slices.Contains(tags, n.Tag) {
		return k.refuse(n)
	}
	return nil
}

func (k *key) refuse(n *yaml.Node) error {
	given := nodeText(n)
	switch {
	case n.Kind == yaml.MappingNode:
		given = "a mapping"
	case n.Kind == yaml.ScalarNode && n.Tag == "!!null":
		given = "nothing"
	case n.Kind == yaml.ScalarNode && n.Tag == "!!str":
		given = strconv.Quote(given)
	}
	wanted, _, _ := k.kind()
	return errors.New(wanted + ", given " + given)
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
	for _, err := range d.profile.Validate() {
		text := err.Error()
		if len(r.file.keys) > 0 {
			// only the whole profile is wrong: there is no line to name
			text = r.file.path + ": " + text
		}
		r.bad = append(r.bad, Violation{Text: text})
	}
}

// benchKeys are the profile keys among the benchmark's settings.
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
