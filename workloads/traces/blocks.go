package traces

import "kvbench/workloads"

// addBlocks gives a request the blocks of its row, the last of which holds what is left of the
// context, or of those that are given.
func (t *Trace) addBlocks(r *workloads.Request, row *traceRow) {
	r.Blocks = make([]workloads.Entry, len(row.Blocks))
	left := row.Context
	for i, id := range row.Blocks {
		key := workloads.BlockKey(row.Scope, id)
		r.Blocks[i] = workloads.Entry{Key: key, Tokens: min(left, row.BlockTokens)}
		left -= row.BlockTokens
	}
	r.IdealBlocks = t.ideal.prefix(row.Scope, row.Blocks)
}

// idealCache tells how well a cache could do: what is missing in it was never asked for before, in
// this replay. A block counts as found only behind others that were, because its content means all
// that comes before it. It knows every block that was asked for, as a cache without bounds would.
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
