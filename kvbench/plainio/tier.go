package plainio

import (
	"context"
	"fmt"
	"math/rand/v2"

	"golang.org/x/sync/errgroup"

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

	shelf
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
	r.size, r.move = r.Size, b.Move
	if r.Op == tiers.Write {
		return r.fill(ctx, b, 0, keep)
	}
	return r.fill(ctx, b, keep, 0)
}

// Step reads or writes an entry.
func (r *Tier) Step(ctx context.Context, b *Bench, worker int) error {
	return r.step(ctx, b, worker, r.Op)
}

// shelf is the objects of a routine in one tier: some to read, which stay, and places for those
// that it writes.
type shelf struct {
	level   cache.Level
	size    int64 // of an object
	move    func(context.Context, int, cache.Level, tiers.Op, tiers.Object) (tiers.Timing, error)
	objects []tiers.Object    // to read
	places  chan tiers.Object // what was written, oldest first; empty ones have no size
}

// fill writes the objects to read, with all workers, and makes the places.
func (s *shelf) fill(ctx context.Context, b *Bench, objects, places int) error {
	s.places = make(chan tiers.Object, places)
	for range places {
		s.places <- tiers.Object{}
	}
	s.objects = make([]tiers.Object, objects)
	group, ctx := errgroup.WithContext(ctx)
	for w := range b.Workers {
		group.Go(func() error {
			for n := w; n < objects; n += b.Workers {
				s.objects[n] = b.Object(s.size)
				_, err := s.move(ctx, w, s.level, tiers.Write, s.objects[n])
				if err != nil {
					return fmt.Errorf("filling the %s tier: %w", s.level.Kind, err)
				}
			}
			return nil
		})
	}
	return group.Wait()
}

// step reads a random object, or writes a new one in the place of the oldest.
//
// Objects are read in random order: in that of their writing a drive would read ahead.
func (s *shelf) step(ctx context.Context, b *Bench, worker int, op tiers.Op) error {
	o := b.Object(s.size)
	if op == tiers.Read {
		o = s.objects[rand.IntN(len(s.objects))]
	} else if old := <-s.places; old.Size > 0 { // there are as many as workers, at least
		if err := s.level.Tier.Remove(ctx, old); err != nil {
			return err
		}
	}
	t, err := s.move(ctx, worker, s.level, op, o)
	if err != nil {
		b.Cut(ctx, worker, s.level.Kind, op, o, t)
		return err
	}
	b.Done(worker, s.level.Kind, op, o, t, 0, t.IO())
	if op == tiers.Write {
		s.places <- o
	}
	return nil
}
