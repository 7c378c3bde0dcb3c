package traces

import (
	"slices"

	"kvbench/workloads"
	"kvbench/workloads/formats"
)

// blockEntries creates the entries of requests of blocks, in the order of the requests.
type blockEntries struct {
	objectTokens int // see Config; 0 keeps the recorded blocks
	ideal        idealCache
}

// add sets the blocks of a request from its row. If the row has all blocks, the last block has the
// remaining tokens of the context.
func (b *blockEntries) add(r *workloads.Request, row *formats.Row) {
	r.IdealBlocks = b.ideal.prefix(row.Scope, row.Blocks)
	if n := b.objectTokens; n > 0 {
		r.Blocks = cut(row, n)
		if r.IdealBlocks >= 0 {
			r.IdealBlocks = min(r.IdealBlocks*row.BlockTokens, b.tokens(row)) / n
		}
		return
	}
	r.Blocks = make([]workloads.Entry, len(row.Blocks))
	left := row.Context
	for i, id := range row.Blocks {
		key := workloads.BlockKey(row.Scope, id)
		r.Blocks[i] = workloads.Entry{Key: key, Tokens: min(left, row.BlockTokens)}
		left -= row.BlockTokens
	}
}

// tokens returns how many tokens the request of a row offers to write.
func (b *blockEntries) tokens(row *formats.Row) int {
	tokens := min(row.Context, len(row.Blocks)*row.BlockTokens)
	if n := b.objectTokens; n > 0 {
		tokens -= tokens % n
	}
	return tokens
}

// cut returns the objects of n tokens that a row's blocks make: several objects per block, or one
// object of several blocks. One size must divide the other. Tokens that fill no object are left out, as
// in engines.
func cut(row *formats.Row, n int) []workloads.Entry {
	whole := min(row.Context, len(row.Blocks)*row.BlockTokens) / n
	list := make([]workloads.Entry, 0, whole)
	if parts := row.BlockTokens / n; parts > 0 {
		for i := range whole {
			key := workloads.BlockKey(row.Scope, row.Blocks[i/parts])
			list = append(list, workloads.Entry{Key: workloads.PartKey(key, i%parts), Tokens: n})
		}
		return list
	}
	for ids := range slices.Chunk(row.Blocks, n/row.BlockTokens) {
		if len(list) == whole {
			break
		}
		list = append(list, workloads.Entry{Key: workloads.GroupKey(row.Scope, ids), Tokens: n})
	}
	return list
}

// idealCache counts the hits of a cache without limit, which misses only blocks that this replay never
// requested before. A block is a hit only if all blocks before it are hits, because its content depends
// on them.
type idealCache struct {
	seen   map[string]map[int64]struct{} // blocks by scope; nil after there were too many
	blocks int
}

// maxIdealBlocks limits the memory of an idealCache to about a GiB. With more blocks the ideal is
// unknown.
const maxIdealBlocks = 16 << 20

// prefix returns how many of the first blocks are known, -1 if there were too many blocks. It adds all
// blocks.
func (c *idealCache) prefix(scope string, ids []int64) (known int) {
	if c.seen == nil {
		if c.blocks > 0 {
			return -1
		}
		c.seen = make(map[string]map[int64]struct{})
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
