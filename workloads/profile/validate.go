package profile

import (
	"fmt"
	"time"

	"kvbench/workloads"
)

// problems collects what is wrong, each with the value and the rule. NaN fulfils no rule:
// comparisons are written so that it fails.
type problems []error

func (p *problems) bad(format string, args ...any) {
	*p = append(*p, fmt.Errorf(format, args...))
}

// share demands a probability.
func (p *problems) share(name string, v float64) {
	if !(v >= 0 && v <= 1) {
		p.bad("%s (%v) must be 0 to 1", name, v)
	}
}

// tokens demands what one request can have.
func (p *problems) tokens(name string, v int) {
	if v < 1 || v > workloads.MaxTokens {
		p.bad("%s (%d) must be 1 to %d", name, v, workloads.MaxTokens)
	}
}

// tokenRange demands a range of that.
func (p *problems) tokenRange(name string, r [2]int) {
	if r[0] < 1 || r[1] < r[0] || r[1] > workloads.MaxTokens {
		p.bad("%s (%d to %d) must rise within 1 to %d", name, r[0], r[1], workloads.MaxTokens)
	}
}

// Validate returns every violation; nil if there is none.
func (p Profile) Validate() []error {
	var found problems
	if len(p.Templates) == 0 {
		found.bad("user_templates must hold at least one template")
	}
	seen := map[string]bool{}
	for i, t := range p.Templates {
		name := t.Name
		if name == "" {
			name = fmt.Sprintf("#%d", i+1)
			found.bad("user template %s must have a name", name)
		}
		if seen[name] {
			found.bad("user template %s is given twice", name)
		}
		seen[name] = true
		t.validate(&found, name)
	}
	found.share("interactive share", p.InteractiveShare)
	found.share("responsive threshold", p.ResponsiveThreshold)
	if p.InteractiveShare > p.ResponsiveThreshold {
		found.bad("interactive share (%v) must not exceed the responsive threshold (%v):"+
			" both cut the same draw", p.InteractiveShare, p.ResponsiveThreshold)
	}
	found.share("new conversation probability", p.NewConversation)
	if p.MaxTurns < 1 || p.MaxTurns > 100000 {
		found.bad("max turns per conversation (%d) must be 1 to 100000", p.MaxTurns)
	}
	found.share("system prompt share", p.SystemPromptShare)
	if p.SystemPromptShare > 0 && len(p.SystemPromptTokens) == 0 {
		found.bad("system prompt share (%v) above 0 needs at least one entry in"+
			" system_prompt_tokens", p.SystemPromptShare)
	}
	for i, n := range p.SystemPromptTokens {
		found.tokens(fmt.Sprintf("system_prompt_tokens[%d]", i), n)
	}
	found.tokens("prefill-only threshold", p.PrefillOnlyTokens)
	found.tokens("decode batch size", p.DecodeBatch)
	found.tokens("sharegpt max context tokens", p.ShareGPT.MaxContext)
	found.tokens("sharegpt max generation tokens", p.ShareGPT.MaxGenerate)
	found.tokens("sharegpt characters per token", p.ShareGPT.CharsPerToken)
	p.RAG.validate(&found)
	for c, q := range p.QoS {
		if min(q.P95, q.P99, q.P999, q.P9999) <= 0 {
			found.bad("qos targets of class %s (%v, %v, %v, %v) must be above 0",
				workloads.Class(c), q.P95, q.P99, q.P999, q.P9999)
		}
	}
	return found
}

func (t Template) validate(found *problems, name string) {
	found.tokenRange("user template "+name+": context range", t.Context)
	found.tokenRange("user template "+name+": generation range", t.Generate)
	const day = 24 * time.Hour / time.Second
	if low, high := t.Think[0], t.Think[1]; !(low >= 0 && high >= low && high <= float64(day)) {
		found.bad("user template %s: think time range (%v to %v s) must rise within 0 to %d s",
			name, low, high, day)
	}
}

func (r RAG) validate(found *problems) {
	found.tokenRange("rag: document tokens", r.SmallModelTokens)
	found.tokenRange("rag: document tokens", r.LargeModelTokens)
	if r.ChunkTokens < 1 || r.ChunkTokens > workloads.MaxTokens {
		found.bad("rag: chunk size (%d tokens) must be 1 to %d", r.ChunkTokens, workloads.MaxTokens)
	}
	if r.TopK < 1 || r.TopK > MaxTopK {
		found.bad("rag: top-k (%d chunks) must be 1 to %d", r.TopK, MaxTopK)
	}
	if r.MaxChunkBytes < 0 || r.MaxDocuments < 0 {
		found.bad("rag: max chunk bytes (%d) and max documents (%d) must not be negative",
			r.MaxChunkBytes, r.MaxDocuments)
	}
	found.share("rag: request probability", r.Share)
}
