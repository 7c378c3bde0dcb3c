package plainio

import (
	"context"
	"fmt"
	"sync/atomic"

	"kvbench/kvbench/result"
	"kvbench/tiers"
	"kvbench/tiers/cache"
	"kvbench/workloads/users"
)

// fileSet has the objects of a routine in one tier: objects to read, which stay, and room for objects to
// write. When the room is full the window ends, because the removal of objects takes longer than writing
// on many filesystems, and Removal measures it separately. In a fileSet with places each new object
// replaces the oldest.
type fileSet struct {
	level cache.Level
	own   remover // removes objects
	size  int64   // of an object
	// chunk > 0: the first operation of each worker moves a different part of an object, in whole
	// chunks, so that the workers create and flush files at different moments. 0: every operation moves
	// a whole object.
	chunk int64
	// entire: reads are always of whole objects.
	entire  bool
	move    moveFunc
	objects []tiers.Object    // to read
	states  []workerState     // of the workers
	room    atomic.Int64      // bytes that may still be written
	places  chan tiers.Object // the written objects, oldest first; nil: no object is replaced
}

// moveFunc reads or writes an object from an offset on.
type moveFunc func(ctx context.Context, worker int, op tiers.Op, o tiers.Object, from int64) (
	tiers.Timing, error)

// workerState is a worker's own state.
type workerState struct {
	draws users.Stream
	n     int64 // operations begun
}

// fill writes objects with several writers.
func (s *fileSet) fill(ctx context.Context, b *Bench, objects, writers int) ([]tiers.Object, error) {
	made := make([]tiers.Object, objects)
	return made, fill(ctx, b.Env, objects, writers, func(ctx context.Context, w, i int) error {
		made[i] = b.Object(s.level, s.size)
		if _, err := s.move(ctx, w, tiers.Write, made[i], 0); err != nil {
			return fmt.Errorf("filling the %s tier: %w", s.level.Kind, err)
		}
		return nil
	})
}

// Objects implements [kvbench.Filled].
func (s *fileSet) Objects() []tiers.Object {
	if s.level.Kind != tiers.Storage {
		return nil
	}
	return s.objects
}

// seedWorkers returns a random stream per worker. So the seed alone determines which objects a worker
// reads.
func seedWorkers(b *Bench) []workerState {
	states := make([]workerState, b.Workers)
	for w := range states {
		states[w].draws = users.NewStream(b.Seed, w)
	}
	return states
}

// cycle makes places and puts the taken objects into them, oldest first.
func (s *fileSet) cycle(places int, taken []tiers.Object) {
	s.places = make(chan tiers.Object, places)
	for i := range places {
		if i < len(taken) {
			s.places <- taken[i]
		} else {
			s.places <- tiers.Object{}
		}
	}
}

// step reads a random object, or writes a new object. The random order defeats read-ahead.
func (s *fileSet) step(ctx context.Context, b *Bench, worker int, op tiers.Op) error {
	h := &s.states[worker]
	h.n++
	part := func(size int64) int64 {
		if s.chunk == 0 || h.n > 1 {
			return size
		}
		return max(s.chunk, size*int64(worker+1)/int64(len(s.states))/s.chunk*s.chunk)
	}
	size := part(s.size)
	var o tiers.Object
	from := int64(0)
	switch {
	case op == tiers.Read:
		o = s.objects[h.draws.Between(users.DrawObject, h.n, 0, len(s.objects)-1)]
		if size = o.Size; !s.entire {
			size = part(o.Size)
		}
		from = o.Size - size
	case s.places != nil:
		o = b.Object(s.level, size)
		if err := s.remove(ctx, b, worker, <-s.places); err != nil { // as many as workers, or more
			return err
		}
	case s.room.Add(-size) < 0:
		b.Stop(result.EndedByFootprint)
		return nil
	default:
		o = b.Object(s.level, size)
	}
	t, err := s.move(ctx, worker, op, o, from)
	if err != nil {
		b.Cut(ctx, worker, s.level.Kind, op, o, t)
		return err
	}
	if op == tiers.Write && s.places != nil {
		s.places <- o
	}
	o.Size = size // the moved bytes
	b.Done(worker, s.level.Kind, op, o, t, 0, t.IO())
	return nil
}

// remove removes an object and counts it, unless the place was empty.
func (s *fileSet) remove(ctx context.Context, b *Bench, worker int, o tiers.Object) error {
	if o.Size == 0 {
		return nil
	}
	begun := b.Clock.Now()
	if err := s.own.Remove(ctx, o); err != nil {
		return err
	}
	now := b.Clock.Now()
	b.Rec.Delete(now, worker, s.level.Kind, o.Size, now-begun)
	return nil
}
