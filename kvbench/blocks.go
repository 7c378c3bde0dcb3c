package kvbench

import (
	"context"

	"kvbench/tiers"
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

// blocks carries out what was decided about the blocks of a request, first to last. Blocks that lie side by side in the
// tier are moved together, which is one operation for the books: its bytes are those of the blocks.
func (w *worker) blocks(ctx context.Context) error {
	j := &w.job
	for at := 0; at < len(j.plan); {
		op, n := &j.plan[at], 1
		var res tiers.Result
		var err error
		switch j.lease.Outcome(at) {
		case tiers.Kept:
			at++
			continue
		case tiers.Miss:
			n, res, err = j.lease.WriteRun(ctx, at, w.tag(tiers.Prefill))
			err = w.wrote(ctx, op, res, tiers.Prefill, n, err)
		default:
			n, res, err = j.lease.ReadRun(ctx, at, w.tag(tiers.Decode))
			_, err = w.didRead(ctx, op, at, res, n, err)
		}
		for k := range n {
			j.lease.Drop(ctx, at+k, w.tag(tiers.Decode))
		}
		if err != nil {
			return err
		}
		at += n
	}
	return nil
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
	// Reads and Writes are the operations that moved blocks, on whatever tier: blocks that lie side by side are moved by one
	// (see -layout), whose latency, size and count are those of the tiers' sections.
	Reads  BlockMoves `json:"reads"`
	Writes BlockMoves `json:"writes"`
}

// BlockMoves is how many operations moved how many blocks.
type BlockMoves struct {
	Operations int64 `json:"operations"`
	Blocks     int64 `json:"blocks"`
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
