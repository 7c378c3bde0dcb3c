package plainio

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"kvbench/kvbench/result"
	"kvbench/tiers"
	"kvbench/tiers/clock"
	"kvbench/workloads/iotrace"
)

// feed goes through the file, pass after pass, and ends the window when all decided operations are
// complete.
//
// Rows keep the gaps of the file, divided by the speed, from pass to pass: each begins a
// millisecond after the last row of the one before.
func (r *Replay) feed(ctx context.Context, b *Bench) {
	origin := b.Clock.Now()
	last, err := r.pass(ctx, b, origin, 0)
	for cycle := 1; errors.Is(err, io.EOF) && cycle != r.Cycles; cycle++ {
		_ = r.rows.Close() // only read from
		if r.rows, err = iotrace.Open(r.Path, r.Allow); err == nil {
			last, err = r.pass(ctx, b, origin, last+time.Millisecond)
		}
	}
	if errors.Is(err, io.EOF) {
		err = r.ahead.Acquire(ctx, replayAhead) // no other operation holds any: all are complete
	}
	switch {
	case err == nil:
		b.drained.Fire()
	case ctx.Err() == nil:
		b.Fail(err, result.EndedByError)
	}
}

// pass decides about the rows of one pass, each at its time, which counts from base in the
// trace's time. It returns that of the last row, and why it ended, io.EOF as a rule.
func (r *Replay) pass(ctx context.Context, b *Bench, origin, base time.Duration) (
	last time.Duration, err error,
) {
	// A result reports the input once, however often it was read: malformed rows of a second
	// pass are the same rows.
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if seen := r.rows.Report(); base == 0 {
			r.input = seen
		} else {
			r.input.Cycles += seen.Cycles
		}
	}()
	for ctx.Err() == nil {
		row, err := r.rows.Next()
		if err != nil {
			return last, err
		}
		last = base + row.At
		due := clock.Never
		if r.Speed > 0 {
			due = origin + time.Duration(float64(last)/r.Speed)
			if err := b.Clock.Sleep(ctx, due-b.Clock.Now()); err != nil {
				return last, err
			}
		}
		if err := r.decide(ctx, b, row, due); err != nil {
			return last, err
		}
		r.mu.Lock()
		r.count.LateNS = max(r.count.LateNS, int64(b.Clock.Now()-due))
		r.mu.Unlock()
	}
	return last, context.Cause(ctx)
}

// decide turns a row into operations: its own, after the evictions that it needs.
//
// The decision follows the order of the file and metadata alone; the bytes move later and in
// another order. So two drives get the same operations.
func (r *Replay) decide(ctx context.Context, b *Bench, row iotrace.Row, due time.Duration) error {
	r.tally(&r.count.Rows)
	key := row.Key
	if row.Tier != int(tiers.Storage) {
		// the same entry in another tier is another one
		key = fmt.Sprintf("Tier-%d/%s", row.Tier, key)
	}
	held, there := r.lru.Peek(key)
	switch {
	case !slices.Contains(r.Tiers, row.Tier),
		r.Phases != nil && !slices.Contains(r.Phases, row.Phase):
		r.tally(&r.count.Skipped)
	case row.Operation == iotrace.Read && there:
		r.lru.Get(key)
		return r.queue(ctx,
			&replayOp{kind: iotrace.Read, object: held, count: &r.count.Reads, due: due})
	case row.Operation == iotrace.Read && r.seen.TestString(key):
		r.tally(&r.count.EvictedReads)
	case row.Operation == iotrace.Read:
		r.tally(&r.count.UnwrittenReads)
	case row.Operation == iotrace.Delete && there:
		return r.remove(ctx, held, &r.count.Deletes)
	case row.Operation == iotrace.Delete:
		r.tally(&r.count.UnknownDeletes)
	case row.Bytes > r.level.Capacity:
		r.tally(&r.count.TooLarge)
	default:
		return r.write(ctx, tiers.Object{Key: key, Gen: b.gen.Add(1), Size: row.Bytes}, due)
	}
	return nil
}

func (r *Replay) tally(count *int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	*count++
}

// write evicts objects and writes. A write of an existing object replaces it: the old one is
// deleted first, because both may not fit.
func (r *Replay) write(ctx context.Context, o tiers.Object, due time.Duration) error {
	if old, there := r.lru.Peek(o.Key); there {
		if err := r.remove(ctx, old, &r.count.Overwrites); err != nil {
			return err
		}
	}
	for r.used+o.Size > r.level.Capacity {
		_, oldest, _ := r.lru.GetOldest()
		if err := r.remove(ctx, oldest, &r.count.Evictions); err != nil {
			return err
		}
	}
	r.lru.Add(o.Key, o)
	r.used += o.Size
	r.seen.AddString(o.Key)
	return r.queue(ctx, &replayOp{kind: iotrace.Write, object: o, count: &r.count.Writes, due: due})
}

// remove removes an entry from the tier's decided content.
func (r *Replay) remove(ctx context.Context, o tiers.Object, count *int64) error {
	r.lru.Remove(o.Key)
	r.used -= o.Size
	return r.queue(ctx, &replayOp{kind: iotrace.Delete, object: o, count: count})
}

// queue puts an operation behind those that have to complete before it: the latest one on its key,
// and, except for reads, the latest deletion. So deletions run one after the other, and a write
// waits for its evictions: the tier never holds more than was decided.
func (r *Replay) queue(ctx context.Context, op *replayOp) error {
	if err := r.ahead.Acquire(ctx, 1); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	op.after(r.latest[op.object.Key])
	r.latest[op.object.Key] = op
	if op.kind != iotrace.Read {
		op.after(r.deletion)
	}
	if op.kind == iotrace.Delete {
		r.deletion = op
	}
	if op.waits == 0 {
		r.ready <- op // never blocks: the channel's capacity is replayAhead
	}
	return nil
}

// after makes op wait for another one, nil for none. Callers hold mu.
func (op *replayOp) after(before *replayOp) {
	if before != nil {
		before.next = append(before.next, op)
		op.waits++
	}
}
