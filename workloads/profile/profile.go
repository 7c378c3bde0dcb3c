package profile

import (
	"time"

	"kvbench/workloads"
)

// Profile is everything that a configuration file can say about the behaviour of users. It is plain
// data.
type Profile struct {
	Templates []Template
	QoS       [workloads.NumClasses]workloads.QoS
	// InteractiveShare of the users are interactive; those below ResponsiveThreshold of the same
	// draw are responsive.
	InteractiveShare, ResponsiveThreshold float64
	// NewConversation is the probability, per turn, that a user starts a new conversation.
	NewConversation float64
	// MaxTurns is the longest conversation. A user has one live conversation at a time, so that
	// there are never more than users.
	MaxTurns int
	// SystemPromptShare of the requests start with one of the common system prompts of
	// SystemPromptTokens tokens.
	SystemPromptShare  float64
	SystemPromptTokens []int
	// PrefillOnlyTokens and more of context make a request prefill only.
	PrefillOnlyTokens int
	// DecodeBatch is the number of generated tokens per batched re-read of an entry.
	DecodeBatch int
	ShareGPT    ShareGPTCaps
	RAG         RAG
}

// Template is a kind of user: inclusive ranges of context tokens, generated tokens and think time
// in seconds.
type Template struct {
	Name              string
	Context, Generate [2]int
	Think             [2]float64
}

// ShareGPTCaps bound the requests that a turn becomes.
type ShareGPTCaps struct {
	MaxContext, MaxGenerate int
	CharsPerToken           int // of the fallback
}

// RAG describes documents and how they are asked for.
type RAG struct {
	ChunkTokens   int
	MaxChunkBytes int64 // bounds a chunk of a model with large tokens
	TopK          int   // chunks per retrieval
	// MaxDocuments are kept; the oldest leave when more are ingested. 0 = all.
	MaxDocuments int
	// Tokens of a document, by the size of the model.
	SmallModelTokens, LargeModelTokens [2]int
	// Share of the turns that retrieve, and of those that are followed by a query of its own.
	Share   float64
	Uniform bool // every chunk of a document is as likely as another; else the k-th has weight 1/k
}

// MaxTopK bounds the chunks of one retrieval.
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
		RAG: RAG{ // of the Python benchmark
			ChunkTokens: 512, MaxChunkBytes: 256 << 20, TopK: 5, Share: 0.1,
			SmallModelTokens: [2]int{4000, 12000}, LargeModelTokens: [2]int{1024, 4096},
		},
		ShareGPT: ShareGPTCaps{MaxContext: 16384, MaxGenerate: 2048, CharsPerToken: 4},
	}
}

// MaxContextTokens returns the largest context that a template allows: the largest entry this
// profile can make.
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
