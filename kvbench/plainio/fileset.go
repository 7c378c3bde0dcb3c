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
	size  int64 // of an object
	// part > 0: the first operation of each worker moves a different part of an object, in multiples of
	// part, so that the workers create and flush files at different moments. 0: every operation moves a
	// whole object.
	part    int64
	mix     mix
	move    moveFunc
	own     func(ctx context.Context, objs ...tiers.Object) error // removes objects, see tiers.Tier
	objects []tiers.Object                                        // to read
	states  []workerState                                         // of the workers
	room    atomic.Int64                                          // bytes that may still be written
	places  chan tiers.Object                                     // the written objects, oldest first; nil: no object is replaced
}

// moveFunc reads or writes an object from an offset on.
type moveFunc func(ctx context.Context, worker int, op tiers.Op, o tiers.Object, from int64) (
	tiers.Timing, error)

// workerState is a worker's own state.
type workerState struct {
	draws users.Stream
	n     int64 // operations begun
}

// seedWorkers returns a random stream for each of n workers, from the stream first on. So the seed alone
// determines which objects a worker reads.
func seedWorkers(seed uint64, first, n int) []workerState {
	states := make([]workerState, n)
	for w := range states {
		states[w].draws = users.NewStream(seed, first+w)
	}
	return states
}

// mix chooses reads or writes, so that reads have their share of the bytes. It counts the bytes before
// they move, so that concurrent streams do not all choose the same direction.
type mix struct {
	share float64 // of reads
	begun [tiers.NumOps]atomic.Int64
}

// next returns the next direction and counts its bytes: read bytes or write bytes.
func (m *mix) next(read, write int64) (op tiers.Op) {
	begun, wrote := float64(m.begun[tiers.Read].Load()), float64(m.begun[tiers.Write].Load())
	if m.share > 0 && begun <= (begun+wrote)*m.share {
		m.begun[tiers.Read].Add(read)
		return tiers.Read
	}
	m.begun[tiers.Write].Add(write)
	return tiers.Write
}

// fill writes objects with several writers.
func (s *fileSet) fill(ctx context.Context, b *Bench, objects, writers int) ([]tiers.Object, error) {
	made := make([]tiers.Object, objects)
	ctx, stop := context.WithCancel(ctx)
	defer stop() // also the progress on the live line
	var done atomic.Int64
	b.Filling(ctx, "filling", int64(objects)*s.size, &done)
	return made, b.Concurrently(ctx, min(writers, objects), func(ctx context.Context, w int) error {
		for i := w; i < objects; i += writers {
			made[i] = b.Object(s.level, s.size)
			if _, err := s.move(ctx, w, tiers.Write, made[i], 0); err != nil {
				return fmt.Errorf("filling the %s tier: %w", s.level.Kind, err)
			}
			done.Add(s.size)
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

// next chooses the next operation of a worker: a random object to read from an offset on, or a new object
// to write. The random order defeats read-ahead. ok is false if there is no room for a new object.
func (s *fileSet) next(b *Bench, worker int) (op tiers.Op, o tiers.Object, from int64, ok bool) {
	state := &s.states[worker]
	state.n++
	part := func(size int64) int64 {
		if s.part == 0 || state.n > 1 {
			return size
		}
		return max(s.part, size*int64(worker+1)/int64(len(s.states))/s.part*s.part)
	}
	read := int64(0)
	if len(s.objects) > 0 {
		read = s.objects[0].Size
	}
	if op = s.mix.next(read, s.size); op == tiers.Read {
		o = s.objects[state.draws.Between(users.DrawObject, state.n, 0, len(s.objects)-1)]
		if s.level.Files() != nil { // an object of a store is read whole
			from = o.Size - part(o.Size)
		}
		return op, o, from, true
	}
	size := part(s.size)
	if s.places == nil && s.room.Add(-size) < 0 {
		return op, o, 0, false
	}
	return op, b.Object(s.level, size), 0, true
}

// Step moves one object.
func (s *fileSet) Step(ctx context.Context, b *Bench, worker int) error {
	op, o, from, ok := s.next(b, worker)
	if !ok {
		b.Stop(result.EndedByFootprint)
		return nil
	}
	if op == tiers.Write && s.places != nil { // there are as many places as workers, or more
		if err := s.remove(ctx, b, worker, <-s.places); err != nil {
			return err
		}
	}
	t, err := s.move(ctx, worker, op, o, from)
	if err != nil {
		b.Cut(ctx, worker, s.level.Kind, op, o, t)
		return err
	}
	if op == tiers.Write && s.places != nil {
		s.places <- o
	}
	o.Size -= from // the moved bytes
	b.Done(worker, s.level.Kind, op, o, t, 0, t.IO())
	return nil
}

// remove removes an object and counts it, unless the place was empty.
func (s *fileSet) remove(ctx context.Context, b *Bench, worker int, o tiers.Object) error {
	if o.Size == 0 {
		return nil
	}
	begun := b.Clock.Now()
	if err := s.own(ctx, o); err != nil {
		return err
	}
	now := b.Clock.Now()
	b.Rec.Delete(now, worker, s.level.Kind, o.Size, now-begun)
	return nil
}
