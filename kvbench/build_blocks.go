package kvbench

import "kvbench/tiers"

// blockTotals sums up decisions about blocks.
type blockTotals struct {
	requests, found             int64 // requests, and those with a cached prefix
	blocks, hits, pending, kept int64
	ideal, unknown              int64 // unknown: blocks of requests whose ideal nobody knows
	tokens, hitTokens, hitBytes int64
}

func (t *blockTotals) add(b BlockSample) {
	t.requests++
	if b.Hits > 0 {
		t.found++
	}
	t.blocks += int64(b.Blocks)
	t.hits += int64(b.Hits)
	t.pending += int64(b.Pending)
	t.kept += int64(b.Kept)
	if b.Ideal < 0 {
		t.unknown += int64(b.Blocks)
	} else {
		t.ideal += int64(b.Ideal)
	}
	t.tokens += int64(b.Tokens)
	t.hitTokens += int64(b.HitTokens)
	t.hitBytes += b.HitBytes
}

func (t *blockTotals) merge(o blockTotals) {
	t.requests += o.requests
	t.found += o.found
	t.blocks += o.blocks
	t.hits += o.hits
	t.pending += o.pending
	t.kept += o.kept
	t.ideal += o.ideal
	t.unknown += o.unknown
	t.tokens += o.tokens
	t.hitTokens += o.hitTokens
	t.hitBytes += o.hitBytes
}

func (b *builder) blockCache(r *Result) {
	t := b.t.blocks
	if t.requests == 0 {
		return
	}
	c := &BlockCache{
		Requests: t.requests, Blocks: t.blocks, Hits: t.hits, Pending: t.pending, Kept: t.kept,
		Written: t.blocks - t.hits - t.kept, Tokens: t.tokens, HitTokens: t.hitTokens, BytesSaved: t.hitBytes,
		HitRatio:       ratio(float64(t.hits), float64(t.blocks)),
		PrefixHitRatio: ratio(float64(t.found), float64(t.requests)),
		TokenHitRatio:  ratio(float64(t.hitTokens), float64(t.tokens)),
	}
	for op, m := range map[tiers.Op]*BlockMoves{tiers.Read: &c.Reads, tiers.Write: &c.Writes} {
		m.Operations, m.Blocks = b.t.moved[op].n, b.t.moved[op].blocks
	}
	if t.unknown == 0 {
		c.IdealHits = new(t.ideal)
		c.IdealHitRatio = ratio(float64(t.ideal), float64(t.blocks))
	}
	r.BlockCache = c
}
