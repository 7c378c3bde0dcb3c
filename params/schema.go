package params

import (
	"math"
	"slices"
	"strings"
	"time"

	"kvbench/workloads"
)

// keyKind is the type of a YAML key.
type keyKind uint8

const (
	keyInt    keyKind = iota
	keyNumber         // whole or not
	keyText
	keyIntPair    // [low, high]
	keyNumberPair // [low, high]
	keyIntList
)

func (k keyKind) String() string {
	return [...]string{"a whole number", "a number", "text", "a list of two whole numbers", "a list of two numbers",
		"a list of whole numbers"}[k]
}

// keyValue holds a value of any kind: numbers has one element for a scalar.
type keyValue struct {
	numbers []float64
	text    string
}

func (v keyValue) int() int               { return int(v.numbers[0]) }
func (v keyValue) ms() time.Duration      { return time.Duration(v.numbers[0] * float64(time.Millisecond)) }
func (v keyValue) intPair() [2]int        { return [2]int{int(v.numbers[0]), int(v.numbers[1])} }
func (v keyValue) numberPair() [2]float64 { return [2]float64{v.numbers[0], v.numbers[1]} }

// yamlKey is one leaf of the YAML file outside parameters and model_configs. set is nil for a key that is accepted without
// effect, and why then says why.
type yamlKey struct {
	name     string // dotted
	kind     keyKind
	min, max float64
	set      func(*profileDraft, keyValue)
	why      string
}

// profileDraft is what the YAML keys write to.
type profileDraft struct {
	profile workloads.Profile
	timing  map[string]time.Duration // per generated token, by generation mode
}

func newProfileDraft() *profileDraft {
	return &profileDraft{
		profile: workloads.DefaultProfile(),
		timing:  map[string]time.Duration{"none": 0, "fast": 2 * time.Millisecond, "realistic": 30 * time.Millisecond},
	}
}

func (d *profileDraft) template(name string) *workloads.Template {
	for i := range d.profile.Templates {
		if d.profile.Templates[i].Name == name {
			return &d.profile.Templates[i]
		}
	}
	panic("params: the default profile has no template " + name)
}

// Why keys of the Python benchmark have no effect here.
const (
	fixedUsers  = "the autoscaler begins with -num-users and keeps between 1 and 100000"
	fixedSteps  = "the steps of the autoscaler's modes are fixed: choose one with -autoscaler-mode, their pace with -autoscaler-interval"
	fixedFull   = "saturation is measured per 100 MiB over the last rounds: set how much of it is wanted with -target-saturation"
	noCUDA      = "this build has no CUDA tier"
	noPrefill   = "prefill takes no simulated time: the suite measures its I/O"
	fixedEvict  = "tiers above the last are kept at 80 %, and an entry larger than that skips the tier"
	noEvictCap  = "finding a victim takes constant time: there is nothing to bound"
	fixedLimits = "the limits are fixed"
	onePerUser  = "a user has one live conversation, so there are never more than users"
	allPrefixes = "the common system prompts are all kept as ordinary entries"
)

// schema is every leaf key, in the order in which the documentation lists them.
var schema = buildSchema()

func buildSchema() []yamlKey {
	var keys []yamlKey
	const big = math.MaxInt32
	add := func(name string, kind keyKind, low, high float64, set func(*profileDraft, keyValue)) {
		keys = append(keys, yamlKey{name: name, kind: kind, min: low, max: high, set: set})
	}
	idle := func(why, section string, kind keyKind, names string) {
		for _, name := range strings.Fields(names) {
			keys = append(keys, yamlKey{name: section + "." + name, kind: kind, max: math.MaxFloat64, why: why})
		}
	}
	for _, t := range workloads.DefaultProfile().Templates {
		at := "user_templates." + t.Name + "."
		add(at+"context_range", keyIntPair, 1, big, func(d *profileDraft, v keyValue) { d.template(t.Name).Context = v.intPair() })
		add(at+"generation_range", keyIntPair, 1, big, func(d *profileDraft, v keyValue) { d.template(t.Name).Generate = v.intPair() })
		add(at+"think_time_range", keyNumberPair, 0, day.Seconds(), func(d *profileDraft, v keyValue) { d.template(t.Name).Think = v.numberPair() })
	}
	for _, mode := range []string{"none", "fast", "realistic"} {
		add("generation_timing."+mode, keyNumber, 0, 3600, func(d *profileDraft, v keyValue) {
			d.timing[mode] = time.Duration(v.numbers[0] * float64(time.Second))
		})
	}
	idle(noPrefill, "prefill_timing", keyNumber, "none fast realistic")
	for c := workloads.Class(workloads.NumClasses); c > 0; {
		c--
		class := c
		at := "qos_profiles." + class.String() + "."
		target := func(name string, field func(*workloads.QoS) *time.Duration) {
			add(at+name, keyNumber, 0.001, 1e9, func(d *profileDraft, v keyValue) { *field(&d.profile.QoS[class]) = v.ms() })
		}
		target("target_latency_p95_ms", func(q *workloads.QoS) *time.Duration { return &q.P95 })
		target("target_latency_p99_ms", func(q *workloads.QoS) *time.Duration { return &q.P99 })
		target("target_latency_p999_ms", func(q *workloads.QoS) *time.Duration { return &q.P999 })
		target("target_latency_p9999_ms", func(q *workloads.QoS) *time.Duration { return &q.P9999 })
		add(at+"priority", keyInt, 0, big, func(d *profileDraft, v keyValue) { d.profile.QoS[class].Priority = v.int() })
	}
	add("qos_distribution.interactive_probability", keyNumber, 0, 1, func(d *profileDraft, v keyValue) { d.profile.InteractiveShare = v.numbers[0] })
	add("qos_distribution.responsive_threshold", keyNumber, 0, 1, func(d *profileDraft, v keyValue) { d.profile.ResponsiveThreshold = v.numbers[0] })
	idle(noEvictCap, "eviction", keyInt, "max_recursion_depth max_evictions_hard_cap max_evictions_min")
	idle(fixedEvict, "eviction", keyNumber, "target_usage_ratio large_entry_limit_ratio")
	idle(noCUDA, "gpu_backend", keyNumber, "memory_fraction free_memory_threshold")
	idle(noCUDA, "gpu_backend", keyInt, "max_eviction_attempts")
	idle(allPrefixes, "prefix_cache", keyInt, "min_prefix_length max_prefix_entries")
	add("prefix_cache.system_prompt_hit_probability", keyNumber, 0, 1, func(d *profileDraft, v keyValue) { d.profile.SystemPromptShare = v.numbers[0] })
	add("prefix_cache.system_prompt_tokens", keyIntList, 1, big, func(d *profileDraft, v keyValue) {
		d.profile.SystemPromptTokens = nil
		for _, n := range v.numbers {
			d.profile.SystemPromptTokens = append(d.profile.SystemPromptTokens, int(n))
		}
	})
	addRAG(add)
	idle(onePerUser, "conversation", keyInt, "max_conversations")
	add("conversation.max_turns_per_conv", keyInt, 1, 100000, func(d *profileDraft, v keyValue) { d.profile.MaxTurns = v.int() })
	add("conversation.end_conversation_probability", keyNumber, 0, 1, func(d *profileDraft, v keyValue) { d.profile.NewConversation = v.numbers[0] })
	idle(fixedUsers, "autoscaler", keyInt, "min_users max_users")
	idle(fixedSteps, "autoscaler", keyInt, "consecutive_samples_required")
	idle(fixedSteps, "autoscaler", keyNumber, "scale_up_factor scale_down_factor")
	add("decode.batch_size", keyInt, 1, big, func(d *profileDraft, v keyValue) { d.profile.DecodeBatch = v.int() })
	add("sharegpt.max_context_tokens", keyInt, 1, big, func(d *profileDraft, v keyValue) { d.profile.ShareGPT.MaxContext = v.int() })
	add("sharegpt.max_generation_tokens", keyInt, 1, big, func(d *profileDraft, v keyValue) { d.profile.ShareGPT.MaxGenerate = v.int() })
	add("sharegpt.chars_per_token_estimate", keyInt, 1, big, func(d *profileDraft, v keyValue) { d.profile.ShareGPT.CharsPerToken = v.int() })
	idle(fixedFull, "saturation_detection", keyNumber, "read_latency_p95_threshold_ms write_latency_p95_threshold_ms")
	idle(fixedFull, "saturation_detection", keyInt, "queue_depth_threshold history_window_size")
	idle(fixedLimits, "validation_limits", keyInt, "max_users max_duration_seconds max_gpu_memory_gb max_cpu_memory_gb")
	return keys
}

// Sections with keys of their own making.
const (
	sectionParameters = "parameters"
	sectionModels     = "model_configs"
)

// schemaIndex finds leaves by dotted name; schemaChildren lists what may stand in a section, "" being the top of the file.
var schemaIndex, schemaChildren = func() (map[string]*yamlKey, map[string][]string) {
	index, children := make(map[string]*yamlKey), make(map[string][]string)
	enter := func(section, child string) {
		if !slices.Contains(children[section], child) {
			children[section] = append(children[section], child)
		}
	}
	for i := range schema {
		index[schema[i].name] = &schema[i]
		parts := strings.Split(schema[i].name, ".")
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
	for _, name := range modelKeys {
		enter(sectionModels+".*", name)
	}
	return index, children
}()

// Note says what one key of the YAML file did.
type Note struct {
	Key  string // dotted
	Line int
	Acts bool
	Why  string // why it has no effect
}
