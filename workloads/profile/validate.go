package profile

import (
	"cmp"
	"fmt"
	"time"

	"kvbench/workloads"
)

// problems collects what is wrong, each with the value and the rule.
type problems []error

// must notes what does not hold. NaN fulfils no rule: comparisons are written so that it fails.
func (p *problems) must(holds bool, format string, args ...any) {
	if !holds {
		*p = append(*p, fmt.Errorf(format, args...))
	}
}

// share demands a probability.
func (p *problems) share(name string, v float64) {
	p.must(v >= 0 && v <= 1, "%s (%v) must be 0 to 1", name, v)
}

// whole demands a number from 1 on.
func (p *problems) whole(name string, v, most int) {
	p.must(v >= 1 && v <= most, "%s (%d) must be 1 to %d", name, v, most)
}

// tokens demands what one request can have.
func (p *problems) tokens(name string, v int) { p.whole(name, v, workloads.MaxTokens) }

// tokenRange demands a range of that.
func (p *problems) tokenRange(name string, r [2]int) {
	p.must(r[0] >= 1 && r[1] >= r[0] && r[1] <= workloads.MaxTokens,
		"%s (%d to %d) must rise within 1 to %d", name, r[0], r[1], workloads.MaxTokens)
}

// Validate returns every violation; nil if there is none.
func (p Profile) Validate() []error {
	var found problems
	found.must(len(p.Templates) > 0, "user_templates must hold at least one template")
	seen := map[string]bool{}
	for i, t := range p.Templates {
		name := cmp.Or(t.Name, fmt.Sprintf("#%d", i+1))
		found.must(t.Name != "", "user template %s must have a name", name)
		found.must(!seen[name], "user template %s is given twice", name)
		seen[name] = true
		found.tokenRange("user template "+name+": context range", t.Context)
		found.tokenRange("user template "+name+": generation range", t.Generate)
		const day = 24 * time.Hour / time.Second
		low, high := t.Think[0], t.Think[1]
		found.must(low >= 0 && high >= low && high <= float64(day), "user template %s: think "+
			"time range (%v to %v s) must rise within 0 to %d s", name, low, high, day)
	}
	found.share("interactive share", p.InteractiveShare)
	found.share("responsive threshold", p.ResponsiveThreshold)
	found.must(!(p.InteractiveShare > p.ResponsiveThreshold), "interactive share (%v) must not"+
		" exceed the responsive threshold (%v): both cut the same draw",
		p.InteractiveShare, p.ResponsiveThreshold)
	found.share("new conversation probability", p.NewConversation)
	found.whole("max turns per conversation", p.MaxTurns, 100000)
	found.share("system prompt share", p.SystemPromptShare)
	found.must(!(p.SystemPromptShare > 0) || len(p.SystemPromptTokens) > 0, "system prompt share"+
		" (%v) above 0 needs at least one entry in system_prompt_tokens", p.SystemPromptShare)
	for i, n := range p.SystemPromptTokens {
		found.tokens(fmt.Sprintf("system_prompt_tokens[%d]", i), n)
	}
	found.tokens("prefill-only threshold", p.PrefillOnlyTokens)
	found.tokens("decode batch size", p.DecodeBatch)
	found.tokens("sharegpt max context tokens", p.ShareGPT.MaxContext)
	found.tokens("sharegpt max generation tokens", p.ShareGPT.MaxGenerate)
	found.tokens("sharegpt characters per token", p.ShareGPT.CharsPerToken)
	r := p.RAG
	found.tokenRange("rag: document tokens", r.SmallModelTokens)
	found.tokenRange("rag: document tokens", r.LargeModelTokens)
	found.tokens("rag: chunk size in tokens", r.ChunkTokens)
	found.whole("rag: top-k chunks", r.TopK, MaxTopK)
	found.must(r.MaxChunkBytes >= 0 && r.MaxDocuments >= 0, "rag: max chunk bytes (%d) and max"+
		" documents (%d) must not be negative", r.MaxChunkBytes, r.MaxDocuments)
	found.share("rag: request probability", r.Share)
	for c, q := range p.QoS {
		found.must(min(q.P95, q.P99, q.P999, q.P9999) > 0,
			"qos targets of class %s (%v, %v, %v, %v) must be above 0",
			workloads.Class(c), q.P95, q.P99, q.P999, q.P9999)
	}
	return found
}
