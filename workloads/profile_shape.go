package workloads

// shape decides what kind of request a context becomes, the same way for users and for traces.
type shape struct {
	promptShare  float64 // 0 without prefix caching
	promptTokens []int
	prefillFrom  int // context tokens from which a request is prefill only
	prefillOnly  bool
	decodeOnly   bool
}

func newShape(p Profile, prefixCaching, prefillOnly, decodeOnly bool) shape {
	s := shape{promptTokens: p.SystemPromptTokens, prefillFrom: p.PrefillOnlyTokens, prefillOnly: prefillOnly, decodeOnly: decodeOnly}
	if prefixCaching && len(p.SystemPromptTokens) > 0 {
		s.promptShare = p.SystemPromptShare
	}
	return s
}

// kind returns the phases of a request with that context.
func (s *shape) kind(context int) Kind {
	switch {
	case s.decodeOnly:
		return DecodeOnly
	case s.prefillOnly || context >= s.prefillFrom:
		return PrefillOnly
	}
	return PrefillDecode
}

// prompt returns the common prompt of the n-th request and its tokens, -1 and 0 for none.
func (s *shape) prompt(u userStream, n int64) (index, tokens int) {
	if s.promptShare <= 0 || u.unit(drawPromptUse, n) >= s.promptShare {
		return -1, 0
	}
	index = u.between(drawPromptWhich, n, 0, len(s.promptTokens)-1)
	return index, s.promptTokens[index]
}

// ownTokens returns the length of the entry that the request writes: its context without the
// prefix, which has an entry of its own, but never nothing.
func ownTokens(context, prefix int) int { return max(1, context-prefix) }
