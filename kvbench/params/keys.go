package params

import (
	_ "embed"
	"flag"
	"math"
	"slices"
	"strings"
	"time"

	"kvbench/workloads"
	"kvbench/workloads/model"
	"kvbench/workloads/profile"
)

//go:embed accepted.txt
var acceptedText string

// keyHearers is who hears the keys of a section, as the table of the parameters has it.
var keyHearers = map[string]string{
	"user_templates":    "users",
	"generation_timing": "requests",
	"qos_profiles":      "requests",
	"qos_distribution":  "requests",
	"prefix_cache":      "users BurstGPT AzureTrace ShareGPT",
	"rag":               "users if enable-rag",
	"conversation":      "users BurstGPT AzureTrace ShareGPT",
	"decode":            "users BurstGPT AzureTrace ShareGPT if decode-reads=batched",
	"sharegpt":          "ShareGPT",
	"sessions":          "Synthetic if profile",
}

// big bounds what is only called positive, so that products of two stay inside 64 bits.
const big = math.MaxInt32

// keys is every key that the YAML file may have beside parameters and models, bound to the fields
// of v. Names and order are those of the configuration of the Python benchmark, whose files load
// unchanged: what it configures and this suite does not have is accepted without effect, and
// -help-parameters and the run's warnings say so.
func keys(v *Values) []parameter {
	var list []parameter
	section, of := "", []string{profileKey}
	key := func(name string, value flag.Value) {
		top, _, _ := strings.Cut(section, ".")
		list = append(list, parameter{name: section + name, is: of, value: value,
			heard: hearings(keyHearers[top])})
	}
	count := func(name string, to *int) { key(name, integer(0, to, 1, workloads.MaxTokens)) }
	tokens := integer(0, new(int), 1, workloads.MaxTokens) // of lists
	share := func(name string, to *float64) { key(name, number(to, 0, 1)) }

	p := &v.Profile
	for i := range p.Templates {
		t := &p.Templates[i]
		section = "user_templates." + t.Name + "."
		key("context_range", bounds(&t.Context, tokens))
		key("generation_range", bounds(&t.Generate, tokens))
		key("think_time_range", bounds(&t.Think, number(nil, 0, day.Seconds())))
	}
	section = "generation_timing."
	for i, mode := range generationModes {
		key(mode, scaled(&v.timing[i], time.Second, 0, 3600))
	}
	// Interactive first: the classes count from the least urgent one.
	for class := range slices.Backward(p.QoS[:]) {
		section = "qos_profiles." + workloads.Class(class).String() + "."
		q := &p.QoS[class]
		key("target_latency_p95_ms", scaled(&q.P95, time.Millisecond, 0.001, 1e9))
		key("target_latency_p99_ms", scaled(&q.P99, time.Millisecond, 0.001, 1e9))
		key("target_latency_p999_ms", scaled(&q.P999, time.Millisecond, 0.001, 1e9))
		key("target_latency_p9999_ms", scaled(&q.P9999, time.Millisecond, 0.001, 1e9))
		key("priority", integer(0, &q.Priority, 0, big))
	}
	section = "qos_distribution."
	share("interactive_probability", &p.InteractiveShare)
	share("responsive_threshold", &p.ResponsiveThreshold)
	section = "prefix_cache."
	share("system_prompt_hit_probability", &p.SystemPromptShare)
	key("system_prompt_tokens", several(&p.SystemPromptTokens, tokens))
	section = "rag."
	count("chunk_size_tokens", &p.RAG.ChunkTokens)
	key("top_k_chunks", integer(0, &p.RAG.TopK, 1, profile.MaxTopK))
	key("max_chunk_bytes", integer(0, &p.RAG.MaxChunkBytes, 1, 1<<50))
	key("max_documents", integer(0, &p.RAG.MaxDocuments, 0, big))
	count("large_model_doc_tokens_min", &p.RAG.LargeModelTokens[0])
	count("large_model_doc_tokens_max", &p.RAG.LargeModelTokens[1])
	count("small_model_doc_tokens_min", &p.RAG.SmallModelTokens[0])
	count("small_model_doc_tokens_max", &p.RAG.SmallModelTokens[1])
	share("request_probability", &p.RAG.Share)
	key("retrieval_distribution", oneOf(&v.retrieval, "uniform", "zipfian"))
	section = "conversation."
	key("max_turns_per_conv", integer(0, &p.MaxTurns, 1, 100000))
	share("end_conversation_probability", &p.NewConversation)
	section = "decode."
	count("batch_size", &p.DecodeBatch)
	section = "sharegpt."
	count("max_context_tokens", &p.ShareGPT.MaxContext)
	count("max_generation_tokens", &p.ShareGPT.MaxGenerate)
	count("chars_per_token_estimate", &p.ShareGPT.CharsPerToken)

	section = "sessions."
	some, seconds := integer(0, new(int), 0, 10000), number(nil, 0, day.Seconds())
	ss := &p.Sessions
	key("system_prompt_tokens", several(&ss.SystemPrompts, tokens))
	key("questions", bounds(&ss.Questions, integer(0, new(int), 1, 10000)))
	key("question_tokens", bounds(&ss.QuestionTokens, tokens))
	key("answer_tokens", bounds(&ss.AnswerTokens, tokens))
	key("think_seconds", bounds(&ss.Think, seconds))
	key("tool_calls", bounds(&ss.ToolCalls, some))
	key("tool_tokens", bounds(&ss.ToolTokens, tokens))
	key("tool_seconds", bounds(&ss.ToolSeconds, seconds))
	share("agent_probability", &ss.Agents)
	key("agents_together", bounds(&ss.Together, integer(0, new(int), 1, 100)))
	key("agent_prompt_tokens", several(&ss.AgentPrompts, tokens))
	key("agent_tool_calls", bounds(&ss.AgentToolCalls, some))
	share("fork_probability", &ss.Fork)
	key("summary_tokens", bounds(&ss.SummaryTokens, tokens))
	key("documents", integer(0, &ss.Documents, 0, big))
	key("retrieved", integer(0, &ss.Retrieved, 0, 1000))
	key("document_tokens", bounds(&ss.DocumentTokens, tokens))

	section, of = "", []string{profileKey, idle}
	for line := range strings.Lines(acceptedText) {
		columns := strings.Split(strings.TrimSpace(line), " | ")
		if len(columns) != 3 {
			continue // a comment
		}
		if columns[1] == "whole" {
			key(columns[0], integer(0, new(int), 0, endless))
		} else {
			key(columns[0], number(new(float64), 0, unbounded))
		}
		list[len(list)-1].help = columns[2]
	}
	return list
}

// newValues are empty values with the users of the Python benchmark, which are MLPerf's; paths mean
// the directory base.
func newValues(base string) *Values {
	v := &Values{base: base, Profile: profile.Default(),
		timing: [3]time.Duration{0, 2 * time.Millisecond, 30 * time.Millisecond}}
	v.rows, v.keys = table(v), keys(v)
	return v
}

// modelKeys are the keys of one model in model_configs. Zero is what is missing, so that 0 is told
// by the model's own rules, together with what belongs to it.
func modelKeys(section string, m *model.Model) []parameter {
	var list []parameter
	key := func(name string, value flag.Value) {
		list = append(list, parameter{name: section + "." + name, value: value})
	}
	count := func(name string, to *int) { key(name, integer(0, to, 0, big)) }
	key("name", word(&m.Name))
	count("num_layers", &m.Layers)
	count("hidden_dim", &m.Hidden)
	count("num_heads", &m.Heads)
	count("kv_heads", &m.KVHeads)
	key("dtype", word(&m.DType))
	key("attention_type", word((*string)(&m.Attention)))
	count("kv_lora_rank", &m.KVLoraRank)
	count("qk_rope_head_dim", &m.QKRopeHeadDim)
	count("kv_dim_per_head", &m.HeadDim)
	count("context_window", &m.Window)
	return list
}
