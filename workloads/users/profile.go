package users

import (
	"time"

	"kvbench/workloads"
)

// Profile holds all settings of the behaviour of users that a configuration file can have. It is plain
// data.
type Profile struct {
	Templates []Template
	QoS       [workloads.NumClasses]workloads.QoS
	// InteractiveShare is the share of interactive users. A user's draw in [0, 1) below
	// InteractiveShare makes it interactive. The same draw below ResponsiveThreshold makes it
	// responsive, else it is a batch user.
	InteractiveShare, ResponsiveThreshold float64
	// NewConversation is the probability per turn that a user starts a new conversation.
	NewConversation float64
	// MaxTurns is the largest number of turns of a conversation. A user has one live conversation at a
	// time.
	MaxTurns int
	// SystemPromptShare is the share of requests that start with a common system prompt.
	// SystemPromptTokens are the tokens of each common prompt.
	SystemPromptShare  float64
	SystemPromptTokens []int
	// A request with at least PrefillOnlyTokens of context is prefill only.
	PrefillOnlyTokens int
	// DecodeBatch is the number of generated tokens per batched re-read of an entry.
	DecodeBatch int
	ShareGPT    ShareGPTCaps
	RAG         RAG
	Sessions    Sessions
}

// Template is a kind of user: inclusive ranges of context tokens, generated tokens, and think time in
// seconds.
type Template struct {
	Name              string
	Context, Generate [2]int
	Think             [2]float64
}

// ShareGPTCaps are the largest tokens of a turn's question and answer.
type ShareGPTCaps struct {
	MaxContext, MaxGenerate int
	CharsPerToken           int // for the tokenizer chars
}

// RAG describes documents and their retrieval.
type RAG struct {
	ChunkTokens   int
	MaxChunkBytes int64 // largest size of a chunk, for models with many bytes per token
	TopK          int   // chunks per retrieval
	// MaxDocuments is the largest number of kept documents: a new one then replaces the oldest. 0 keeps
	// all.
	MaxDocuments int
	// Ranges of the tokens of a document, by the size of the model.
	SmallModelTokens, LargeModelTokens [2]int
	// Share is the share of turns that retrieve, and the share of turns with a separate query after
	// them.
	Share   float64
	Uniform bool // all chunks of a document are equally likely; else the k-th has weight 1/k
}

// Sessions describes the sessions of an assistant. Ranges are inclusive, and each doubling in a range
// is equally likely: most questions are short, and some are long. It is plain data. The zero Sessions
// has no sessions.
type Sessions struct {
	// SystemPrompts are the tokens of the common prompts, including tool descriptions. A session has
	// one of them.
	SystemPrompts []int
	// Questions is the number of questions in a session, QuestionTokens the tokens of each, and Think
	// the seconds before it.
	Questions, QuestionTokens [2]int
	Think                     [2]float64
	// AnswerTokens are the tokens that a request generates. Later prompts contain them.
	AnswerTokens [2]int
	// ToolCalls is the number of tool calls of a question. ToolTokens are the tokens of a result,
	// ToolSeconds the time of a call. A result causes the next request at once.
	ToolCalls, ToolTokens [2]int
	ToolSeconds           [2]float64
	// Agents is the probability that a tool call starts agents, Together of them at a time. Each agent
	// has a common prompt and its own tool calls. The agents run concurrently, and the session waits
	// for all their answers.
	Agents         float64
	Together       [2]int // less than 1 counts as 1
	AgentPrompts   []int
	AgentToolCalls [2]int
	Fork           float64 // probability that a question replaces the one before it
	SummaryTokens  [2]int  // tokens of the summary from which a session continues if the window is full
	// Retrieved is the number of documents that a question retrieves, of Documents; 0 = none. The k-th
	// document has a weight of about 1/k.
	Documents, Retrieved int
	DocumentTokens       [2]int
}

// Longest is the longest prompt in tokens for a model without a window: the window of Llama 3.1. Most
// agents are used with at least this window.
const Longest = 131072

// MaxTopK is the largest number of chunks of one retrieval.
const MaxTopK = 1024

// Default returns the users of MLPerf Storage's KV-cache workload.
func Default() Profile {
	ms := func(p95, p99, p999, p9999 time.Duration, priority int) workloads.QoS {
		const ms = time.Millisecond
		return workloads.QoS{P95: p95 * ms, P99: p99 * ms, P999: p999 * ms, P9999: p9999 * ms,
			Priority: priority}
	}
	return Profile{
		Templates: []Template{
			{"chatbot", [2]int{512, 4096}, [2]int{50, 200}, [2]float64{0.1, 0.5}},
			{"coding", [2]int{4096, 25000}, [2]int{100, 500}, [2]float64{0.2, 1.0}},
			{"document", [2]int{4096, 16384}, [2]int{200, 800}, [2]float64{0.3, 1.5}},
		},
		QoS: [workloads.NumClasses]workloads.QoS{
			workloads.Batch:       ms(1000, 5000, 7500, 10000, 1),
			workloads.Responsive:  ms(100, 200, 350, 500, 2),
			workloads.Interactive: ms(50, 100, 150, 200, 3),
		},
		InteractiveShare:    0.15,
		ResponsiveThreshold: 0.50,
		NewConversation:     0.2,
		MaxTurns:            50,
		SystemPromptShare:   0.2,
		SystemPromptTokens:  []int{5, 9, 6},
		PrefillOnlyTokens:   10000,
		DecodeBatch:         32,
		RAG: RAG{ // as in the Python benchmark
			ChunkTokens: 512, MaxChunkBytes: 256 << 20, TopK: 5, Share: 0.1,
			SmallModelTokens: [2]int{4000, 12000}, LargeModelTokens: [2]int{1024, 4096},
		},
		ShareGPT: ShareGPTCaps{MaxContext: 16384, MaxGenerate: 2048, CharsPerToken: 4},
	}
}

// MaxContextTokens returns the largest context of the templates, which is also the largest entry of
// this profile.
func (p Profile) MaxContextTokens() int {
	largest := 0
	for _, t := range p.Templates {
		largest = max(largest, t.Context[1])
	}
	return largest
}

// Class maps a draw in [0, 1) to a class.
func (p Profile) Class(r float64) workloads.Class {
	switch {
	case r < p.InteractiveShare:
		return workloads.Interactive
	case r < p.ResponsiveThreshold:
		return workloads.Responsive
	}
	return workloads.Batch
}

// Kind returns the phases of a request with the given context.
func (p *Profile) Kind(context int) workloads.Kind {
	if context >= p.PrefillOnlyTokens {
		return workloads.PrefillOnly
	}
	return workloads.PrefillDecode
}

// Prompt returns the index and the tokens of the common prompt of the n-th request, -1 and 0 for none.
func (p *Profile) Prompt(u Stream, n int64) (index, tokens int) {
	prompts := p.SystemPromptTokens
	if len(prompts) == 0 || u.Unit(DrawPromptUse, n) >= p.SystemPromptShare {
		return -1, 0
	}
	index = u.Between(DrawPromptWhich, n, 0, len(prompts)-1)
	return index, prompts[index]
}

// Only returns the profile of a load without common prompts, or with prefill-only requests.
func (p Profile) Only(prefixCaching, prefillOnly bool) Profile {
	if !prefixCaching {
		p.SystemPromptShare = 0
	}
	if prefillOnly {
		p.PrefillOnlyTokens = 0
	}
	return p
}
