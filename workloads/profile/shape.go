package profile

import "kvbench/workloads"

// Shape decides what kind of request a context becomes, the same way for users and for traces.
type Shape struct {
	promptShare  float64 // 0 without prefix caching
	promptTokens []int
	prefillFrom  int // context tokens from which a request is prefill only
	prefillOnly  bool
	decodeOnly   bool
}

func NewShape(p Profile, prefixCaching, prefillOnly, decodeOnly bool) Shape {
	s := Shape{promptTokens: p.SystemPromptTokens, prefillFrom: p.PrefillOnlyTokens, prefillOnly: prefillOnly, decodeOnly: decodeOnly}
	if prefixCaching && len(p.SystemPromptTokens) > 0 {
		s.promptShare = p.SystemPromptShare
	}
	return s
}

// Kind returns the phases of a request with that context.
func (s *Shape) Kind(context int) workloads.Kind {
	switch {
	case s.decodeOnly:
		return workloads.DecodeOnly
	case s.prefillOnly || context >= s.prefillFrom:
		return workloads.PrefillOnly
	}
	return workloads.PrefillDecode
}

// Prompt returns the common prompt of the n-th request and its tokens, -1 and 0 for none.
func (s *Shape) Prompt(u Stream, n int64) (index, tokens int) {
	if s.promptShare <= 0 || u.Unit(DrawPromptUse, n) >= s.promptShare {
		return -1, 0
	}
	index = u.Between(DrawPromptWhich, n, 0, len(s.promptTokens)-1)
	return index, s.promptTokens[index]
}

// OwnTokens returns the length of the entry that the request writes: its context without the
// prefix, which has an entry of its own, but never nothing.
func OwnTokens(context, prefix int) int { return max(1, context-prefix) }
