package plainio

import (
	"context"
	"fmt"

	"kvbench/kvbench"
	"kvbench/kvbench/result"
	"kvbench/tiers"
	"kvbench/tiers/cache"
)

// Tier reads or writes entries of one size in one tier with the transfer code of the cache, but without
// cache, queue and requests.
type Tier struct {
	Level tiers.Kind
	Op    tiers.Op
	Size  int64 // bytes per entry
	// Footprint is the maximum number of bytes in the tier. 0 = half of the tier's capacity.
	Footprint int64

	fileSet
}

var _ Routine = (*Tier)(nil)

// Prepare fills the tier for reads. For writes the tier is empty at the start. On the storage tier a
// full footprint ends the window. A memory tier is full soon and replaces its oldest entries, because
// their removal takes nearly no time.
func (r *Tier) Prepare(ctx context.Context, b *Bench) (err error) {
	if r.level, err = b.Level(r.Level); err != nil {
		return err
	}
	r.own = r.level.Tier.Remove
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
	r.states = seedWorkers(b.Seed, 0, b.Workers)
	switch {
	case r.Op == tiers.Read:
		r.mix.share = 1
		r.objects, err = r.fill(ctx, b, keep, b.Workers)
		return err
	case r.Level == tiers.Storage:
		r.room.Store(r.Footprint)
	default:
		r.cycle(keep, nil)
	}
	return nil
}

// Forecast: on the storage tier writes end when the footprint is full. A memory tier needs no storage.
func (r *Tier) Forecast() kvbench.Forecast {
	if r.Level != tiers.Storage {
		return kvbench.Forecast{}
	}
	if r.Op == tiers.Read {
		return kvbench.Forecast{Fill: r.Footprint}
	}
	return kvbench.Forecast{Moves: r.Footprint, WriteShare: 1}
}

// Report adds the tier's footprint.
func (r *Tier) Report(res *result.Result) {
	res.PlainIO = &result.PlainIO{FootprintBytes: r.Footprint, FileBytes: r.Size}
}
