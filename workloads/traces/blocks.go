package traces

import "kvbench/workloads"

// Blocks are how engines that page their cache keep it: a fixed number of tokens each, addressed by
// their content and all that comes before it, so that requests with equal beginnings share blocks.

// blockRequest makes the request of a row of blocks.
func (t *Trace) blockRequest(row *traceRow) *workloads.Request {
	r := &workloads.Request{
		User: -1, Seq: row.seq, Class: workloads.Responsive, Arrival: row.arrival,
		Conversation: int(row.seq), Turn: 1, SystemPrompt: -1,
		ContextTokens: row.Context, GenerateTokens: row.Generate,
		Blocks: make([]workloads.Entry, len(row.Blocks)),
	}
	left := row.Context
	for i, id := range row.Blocks {
		r.Blocks[i] = workloads.Entry{Key: workloads.BlockKey(row.Scope, id), Tokens: min(left, row.BlockTokens)}
		left -= row.BlockTokens
	}
	r.IdealBlocks = t.ideal.prefix(row.Scope, row.Blocks)
	return r
}

// idealCache knows every block that was asked for: what a cache without bounds would hold.
type idealCache struct {
	scopes map[string]uint32
	seen   map[idealBlock]struct{}
}

type idealBlock struct {
	scope uint32
	id    int64
}

// maxIdealBlocks bounds its memory, to about a GiB. Beyond it the ideal is not known.
const maxIdealBlocks = 16 << 20

func newIdealCache() *idealCache {
	return &idealCache{scopes: map[string]uint32{}, seen: map[idealBlock]struct{}{}}
}

// prefix returns how many of the first blocks are known, and knows all of them from then on.
func (c *idealCache) prefix(scope string, ids []int64) int {
	if c.seen == nil {
		return -1
	}
	n, ok := c.scopes[scope]
	if !ok {
		n = uint32(len(c.scopes))
		c.scopes[scope] = n
	}
	known, unbroken := 0, true
	for _, id := range ids {
		b := idealBlock{n, id}
		if _, ok := c.seen[b]; ok {
			if unbroken {
				known++
			}
			continue
		}
		unbroken = false
		c.seen[b] = struct{}{}
	}
	if len(c.seen)+len(c.scopes) > maxIdealBlocks {
		c.seen, c.scopes = nil, nil
	}
	return known
}
