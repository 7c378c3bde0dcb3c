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
	seen   map[string]map[int64]struct{} // blocks by scope; nil once there were too many
	blocks int
}

// maxIdealBlocks bounds its memory, to about a GiB. Beyond it the ideal is not known.
const maxIdealBlocks = 16 << 20

// prefix returns how many of the first blocks are known, and knows all of them from then on.
func (c *idealCache) prefix(scope string, ids []int64) (known int) {
	if c.seen == nil {
		return -1
	}
	seen := c.seen[scope]
	if seen == nil {
		seen = make(map[int64]struct{})
		c.seen[scope] = seen
	}
	before := len(seen)
	for i, id := range ids {
		if _, ok := seen[id]; ok && known == i {
			known++
		}
		seen[id] = struct{}{}
	}
	if c.blocks += len(seen) - before; c.blocks+len(c.seen) > maxIdealBlocks {
		c.seen = nil
	}
	return known
}
