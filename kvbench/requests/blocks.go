package requests

import (
	"context"

	"kvbench/kvbench/record"
	"kvbench/tiers"
	"kvbench/tiers/cache"
)

// decideBlocks decides about the blocks of a request, in the order in which
// requests are taken: while a decision waits for others to let go of what it
// needs, nobody takes another request. It says false when the run ended
// meanwhile. Callers hold mu.
func (d *dispatcher) decideBlocks(worker int, j *job) bool {
	decided := d.cache.Decide(&j.lease, j.intents)
	if !decided {
		d.deciding = true
		for !decided && !d.closed {
			d.cond.Wait()
			decided = !d.closed && d.cache.Decide(&j.lease, j.intents)
		}
		d.deciding = false
		d.cond.Broadcast()
		if !decided {
			return false
		}
	}
	s := record.BlockSample{At: d.clock.Now(), Shard: worker, Blocks: len(j.intents),
		Ideal: j.req.IdealBlocks}
	for i := range j.intents {
		s.Tokens += j.plan[i].Tokens
		switch j.lease.Outcome(i) {
		case cache.Unreachable:
			s.Kept++
			continue
		case cache.Miss:
			continue
		case cache.Pending:
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

// blocks carries out what was decided about the blocks of a request, first to last. Blocks that lie
// side by side in the tier are moved together, which counts as one operation: its bytes are those
// of the blocks.
func (w *worker) blocks(ctx context.Context) error {
	j := &w.job
	for at := 0; at < len(j.plan); {
		op, n := &j.plan[at], 1
		var res cache.Result
		var err error
		switch j.lease.Outcome(at) {
		case cache.Unreachable:
			at++
			continue
		case cache.Miss:
			n, res, err = j.lease.Write(ctx, at, w.tag(tiers.Prefill))
			err = w.wrote(ctx, op, res, tiers.Prefill, n, err)
		default:
			n, res, err = j.lease.Read(ctx, at, w.tag(tiers.Decode))
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
