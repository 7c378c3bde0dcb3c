package plainio

import (
	"context"
	"fmt"
	"math/rand/v2"

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

	level   cache.Level
	objects []tiers.Object    // to read
	places  chan tiers.Object // of what is written, oldest first; empty ones have no size
}

var _ Routine = (*Tier)(nil)

// Prepare fills the tier for reading. Of a write benchmark the tier starts empty, and entries
// beyond the footprint are deleted as new ones come, as a cache that is full does.
func (r *Tier) Prepare(ctx context.Context, b *Bench) (err error) {
	if r.level, err = b.Level(r.Level); err != nil {
		return err
	}
	capacity := r.level.Capacity
	if r.Footprint == 0 || r.Footprint > capacity/2 {
		r.Footprint = capacity / 2
	}
	keep := int(r.Footprint / r.Size)
	if keep < b.Workers+1 {
		return fmt.Errorf("%w: %d workers with entries of %d bytes need at least %d bytes of the "+
			"%s tier, it has %d",
			cache.ErrTooLarge, b.Workers, r.Size, 2*int64(b.Workers+1)*r.Size, r.Level, capacity)
	}
	if r.Op == tiers.Write {
		r.places = make(chan tiers.Object, keep)
		for range keep {
			r.places <- tiers.Object{}
		}
		return nil
	}
	for range keep {
		o := b.Object("tier", r.Size)
		if _, _, err := b.Transfer.Write(ctx, r.level.Tier, nil, o); err != nil {
			return fmt.Errorf("filling the %s tier: %w", r.Level, err)
		}
		r.objects = append(r.objects, o)
	}
	return nil
}

// Step reads a random entry, or writes a new one and deletes the oldest beyond
// the footprint.
//
// Entries are read in random order: in that of their writing a drive would read ahead.
func (r *Tier) Step(ctx context.Context, b *Bench, worker int) error {
	var o tiers.Object
	if r.Op == tiers.Read {
		o = r.objects[rand.IntN(len(r.objects))]
	} else {
		if old := <-r.places; old.Size > 0 { // there are more than workers
			if err := r.level.Tier.Remove(ctx, old); err != nil {
				return err
			}
		}
		o = b.Object("tier", r.Size)
	}
	t, err := b.Move(ctx, worker, r.level, r.Op, o)
	if err != nil {
		return err
	}
	b.Done(worker, r.Level, r.Op, o, t, 0, t.IO())
	if r.Op == tiers.Write {
		r.places <- o
	}
	return nil
}
