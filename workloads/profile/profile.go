package profile

import (
	"fmt"
	"math"
	"time"

	"kvbench/workloads"
)

// Template is a kind of user: inclusive ranges of context tokens, generated tokens and think time
// in seconds.
type Template struct {
	Name              string
	Context, Generate [2]int
	Think             [2]float64
}

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

// Default returns the users of MLPerf Storage's KV-cache workload.
func Default() Profile {
	ms := func(p95, p99, p999, p9999, priority int) workloads.QoS {
		return workloads.QoS{P95: time.Duration(p95) * time.Millisecond, P99: time.Duration(p99) * time.Millisecond,
			P999: time.Duration(p999) * time.Millisecond, P9999: time.Duration(p9999) * time.Millisecond, Priority: priority}
	}
	return Profile{
		Templates: []Template{
			{Name: "chatbot", Context: [2]int{512, 4096}, Generate: [2]int{50, 200}, Think: [2]float64{0.1, 0.5}},
			{Name: "coding", Context: [2]int{4096, 25000}, Generate: [2]int{100, 500}, Think: [2]float64{0.2, 1.0}},
			{Name: "document", Context: [2]int{4096, 16384}, Generate: [2]int{200, 800}, Think: [2]float64{0.3, 1.5}},
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
		RAG:                 DefaultRAG(),
		ShareGPT:            ShareGPTCaps{MaxContext: 16384, MaxGenerate: 2048, CharsPerToken: 4},
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

// Validate returns every violation, each with the value and the rule; nil if there is none.
func (p Profile) Validate() []error {
	var problems []error
	bad := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	share := func(name string, v float64) {
		if !(v >= 0 && v <= 1) { // written so that NaN fails
			bad("%s (%v) must be 0 to 1", name, v)
		}
	}
	tokens := func(name string, v int) {
		if v < 1 || v > workloads.MaxTokens {
			bad("%s (%d) must be 1 to %d", name, v, workloads.MaxTokens)
		}
	}
	if len(p.Templates) == 0 {
		bad("user_templates must hold at least one template")
	}
	seen := map[string]bool{}
	for i, t := range p.Templates {
		name := t.Name
		if name == "" {
			name = fmt.Sprintf("#%d", i+1)
			bad("user template %s must have a name", name)
		}
		if seen[name] {
			bad("user template %s is given twice", name)
		}
		seen[name] = true
		problems = append(problems, t.validate(name)...)
	}
	share("interactive share", p.InteractiveShare)
	share("responsive threshold", p.ResponsiveThreshold)
	if p.InteractiveShare > p.ResponsiveThreshold {
		bad("interactive share (%v) must not exceed the responsive threshold (%v): both cut the same draw", p.InteractiveShare, p.ResponsiveThreshold)
	}
	share("new conversation probability", p.NewConversation)
	if p.MaxTurns < 1 || p.MaxTurns > 100000 {
		bad("max turns per conversation (%d) must be 1 to 100000", p.MaxTurns)
	}
	share("system prompt share", p.SystemPromptShare)
	if p.SystemPromptShare > 0 && len(p.SystemPromptTokens) == 0 {
		bad("system prompt share (%v) above 0 needs at least one entry in system_prompt_tokens", p.SystemPromptShare)
	}
	for i, n := range p.SystemPromptTokens {
		tokens(fmt.Sprintf("system_prompt_tokens[%d]", i), n)
	}
	tokens("prefill-only threshold", p.PrefillOnlyTokens)
	tokens("decode batch size", p.DecodeBatch)
	tokens("sharegpt max context tokens", p.ShareGPT.MaxContext)
	tokens("sharegpt max generation tokens", p.ShareGPT.MaxGenerate)
	tokens("sharegpt characters per token", p.ShareGPT.CharsPerToken)
	problems = append(problems, p.RAG.validate()...)
	for c, q := range p.QoS {
		for _, d := range []time.Duration{q.P95, q.P99, q.P999, q.P9999} {
			if d <= 0 {
				bad("qos targets of class %s (%v, %v, %v, %v) must be above 0", workloads.Class(c), q.P95, q.P99, q.P999, q.P9999)
				break
			}
		}
	}
	return problems
}

// validate returns the violations of one template.
func (t Template) validate(name string) []error {
	var problems []error
	bad := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	tokens := func(what string, r [2]int) {
		if r[0] < 1 || r[1] < r[0] || r[1] > workloads.MaxTokens {
			bad("user template %s: %s range (%d to %d) must rise within 1 to %d", name, what, r[0], r[1], workloads.MaxTokens)
		}
	}
	tokens("context", t.Context)
	tokens("generation", t.Generate)
	const day = 86400
	if !(t.Think[0] >= 0 && t.Think[1] >= t.Think[0] && t.Think[1] <= day) || math.IsNaN(t.Think[1]) {
		bad("user template %s: think time range (%v to %v s) must rise within 0 to %d s", name, t.Think[0], t.Think[1], day)
	}
	return problems
}

// Option is one of the three workloads of MLPerf Storage v3.0. All of them run without generation
// sleeps and without a gpu tier.
type Option struct {
	Number              int
	Name                string
	Model               string // key of a built-in model
	Users               int
	Window              time.Duration
	GPUGiB, CPUGiB      float64
	MaxConcurrentAllocs int
}

// Options returns the MLPerf options in order. The slice is the caller's.
func Options() []Option {
	return []Option{
		{Number: 1, Name: "Max Storage Stress", Model: "llama3.1-8b", Users: 200, Window: 300 * time.Second, MaxConcurrentAllocs: 16},
		{Number: 2, Name: "Storage Throughput", Model: "llama3.1-8b", Users: 100, Window: 300 * time.Second, CPUGiB: 4, MaxConcurrentAllocs: 16},
		{Number: 3, Name: "Large Model", Model: "llama3.1-70b-instruct", Users: 70, Window: 300 * time.Second, MaxConcurrentAllocs: 4},
	}
}

// ShareGPTCaps bound the requests that a turn becomes.
type ShareGPTCaps struct {
	MaxContext, MaxGenerate int
	CharsPerToken           int // of the fallback
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
