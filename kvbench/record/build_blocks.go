package record

import (
	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
	"kvbench/tiers"
)

func (b *builder) blockCache(r *result.Result) {
	n := func(c blockCounter) int64 { return b.sum(blockSum(c)) }
	share := func(part, whole blockCounter) *float64 { return units.Ratio(n(part), n(whole)) }
	if n(blockRequests) == 0 {
		return
	}
	moves := func(op tiers.Op) result.BlockMoves {
		return result.BlockMoves{Operations: b.sum(blockMoves(op)), Blocks: b.sum(blockMoves(op) + 1)}
	}
	c := &result.BlockCache{
		Requests: n(blockRequests), Blocks: n(blocksAsked), Hits: n(blockHits), Pending: n(blockPending), Kept: n(blockKept),
		Written: n(blocksAsked) - n(blockHits) - n(blockKept), Tokens: n(blockTokens), HitTokens: n(blockHitTokens),
		BytesSaved: n(blockHitBytes), HitRatio: share(blockHits, blocksAsked), PrefixHitRatio: share(blockFound, blockRequests),
		TokenHitRatio: share(blockHitTokens, blockTokens), Reads: moves(tiers.Read), Writes: moves(tiers.Write),
	}
	if n(blockUnknown) == 0 {
		c.IdealHits, c.IdealHitRatio = new(n(blockIdeal)), share(blockIdeal, blocksAsked)
	}
	r.BlockCache = c
}
