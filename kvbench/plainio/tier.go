package plainio

import (
	"context"
	"fmt"

	"kvbench/kvbench/result"
	"kvbench/tiers"
	"kvbench/tiers/cache"
)

// Tier reads or writes entries of one size in one tier, through the same
// transfer as the cache uses, without cache, queue or requests.
type Tier struct {
	Level tiers.Kind
	Op    tiers.Op
	Size  int64 // bytes per entry
	// Footprint bounds the bytes that lie in the tier; 0 = half of its capacity. It is
	// many times an entry, lest a drive's own memory serves all reads.
	Footprint int64

	fileSet
}

var _ Routine = (*Tier)(nil)

// Prepare fills the tier for reading. Of a write benchmark the tier starts empty. The storage tier
// ends the window when it has its footprint; a tier of memory, which is full within moments, goes
// on in the place of the oldest entries: removing them costs nothing to speak of.
func (r *Tier) Prepare(ctx context.Context, b *Bench) (err error) {
	if r.level, err = b.Level(r.Level); err != nil {
		return err
	}
	if r.Footprint == 0 {
		r.Footprint = r.level.Capacity / 2
	}
	keep := int(r.Footprint / r.Size)
	if keep < b.Workers+1 {
		return fmt.Errorf("%w: %d workers with entries of %d bytes need at least %d bytes of the "+
			"%s tier, the footprint is %d (-ceiling-size-gb)", cache.ErrTooLarge, b.Workers, r.Size,
			int64(b.Workers+1)*r.Size, r.Level, r.Footprint)
	}
	r.size = r.Size
	r.move = func(ctx context.Context, worker int, op tiers.Op, o tiers.Object, _ int64) (
		tiers.Timing, error) {
		return b.Move(ctx, worker, r.level, op, o)
	}
	r.seedWorkers(b)
	switch {
	case r.Op == tiers.Read:
		return r.readable(ctx, b, keep, b.Workers)
	case r.Level == tiers.Storage:
		r.room.Store(r.Footprint)
	default:
		r.cycle(keep, nil)
	}
	return nil
}

// Step reads or writes an entry.
func (r *Tier) Step(ctx context.Context, b *Bench, worker int) error {
	return r.step(ctx, b, worker, r.Op)
}

// Report says how much of the tier was used.
func (r *Tier) Report(res *result.Result) {
	res.PlainIO = &result.PlainIO{FootprintBytes: r.Footprint, FileBytes: r.Size}
}
