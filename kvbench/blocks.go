package kvbench

import (
	"context"

	"kvbench/tiers"
	"kvbench/workloads"
)

// decideBlocks decides about the blocks of a request, in the order in which
// requests are taken: while a decision waits for others to let go of what it
// needs, nobody takes another request. It says false when the run ended
// meanwhile. Callers hold mu.
func (d *dispatcher) decideBlocks(worker int, j *job) bool {
	decided := d.cache.DecideBlocks(&j.lease, j.intents)
	if !decided {
		d.deciding = true
		for !decided && !d.closed {
			d.cond.Wait()
			decided = !d.closed && j.lease.Resume()
		}
		d.deciding = false
		d.cond.Broadcast()
		if !decided {
			return false
		}
	}
	s := BlockSample{At: d.clock.Now(), Shard: worker, Blocks: len(j.intents), Ideal: j.req.IdealBlocks}
	for i := range j.intents {
		s.Tokens += j.plan[i].Tokens
		switch j.lease.Outcome(i) {
		case tiers.Kept:
			s.Kept++
			continue
		case tiers.Miss:
			continue
		case tiers.Pending:
			s.Pending++
		}
		s.Hits++
		s.HitTokens += j.plan[i].Tokens
		s.HitBytes += j.intents[i].Size
	}
	d.rec.Blocks(s)
	if d.tellHit != nil {
		d.tellHit(j.req, s)
	}
	return true
}

// block carries out what was decided about one block.
func (w *worker) block(ctx context.Context, op *workloads.Op, at int) (err error) {
	lease := &w.job.lease
	switch lease.Outcome(at) {
	case tiers.Kept:
		return nil
	case tiers.Miss:
		err = w.write(ctx, op, at, tiers.Prefill)
	default:
		_, err = w.read(ctx, op, at)
	}
	lease.Drop(ctx, at, w.tag(tiers.Decode))
	return err
}

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

// BlockCache is how the cache served a block trace: the requests that were decided inside the window.
type BlockCache struct {
	Requests int64 `json:"requests"`
	Blocks   int64 `json:"blocks"`  // asked for
	Hits     int64 `json:"hits"`    // in the cached prefixes
	Pending  int64 `json:"pending"` // of the hits: were being written
	Kept     int64 `json:"kept"`    // there, but behind a missing one: neither read nor written
	Written  int64 `json:"written"` // to be written
	// HitRatio is hits ÷ blocks. IdealHitRatio is that of a cache without bounds on the same requests, null when too many
	// distinct blocks were asked for to know it.
	HitRatio      *float64 `json:"hit_ratio"`
	IdealHits     *int64   `json:"ideal_hits"`
	IdealHitRatio *float64 `json:"ideal_hit_ratio"`
	// PrefixHitRatio is the share of requests of which at least the first block was found, TokenHitRatio that of the tokens.
	PrefixHitRatio *float64 `json:"prefix_hit_ratio"`
	TokenHitRatio  *float64 `json:"token_hit_ratio"`
	Tokens         int64    `json:"tokens"` // of blocks
	HitTokens      int64    `json:"hit_tokens"`
	BytesSaved     int64    `json:"bytes_saved"` // of hits: neither computed nor written again
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
	if t.unknown == 0 {
		c.IdealHits = new(t.ideal)
		c.IdealHitRatio = ratio(float64(t.ideal), float64(t.blocks))
	}
	r.BlockCache = c
}
