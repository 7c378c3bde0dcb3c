package plainio

import (
	"context"

	"kvbench/tiers"
	"kvbench/tiers/cache"
)

// Ceiling is plain sequential I/O of the storage tier's files with the same
// chunk and concurrency: no cache, no queue, no data generation beyond a stamp
// that keeps every 4 KiB block unique. What the engine moves is to be compared
// with it, so it goes past the engine's own transfer.
type Ceiling struct {
	ReadShare float64 // of the bytes: 0 writes only, 1 reads only
	FileSize  int64

	shelf
	*mover
	mix   mix
	bench *Bench
	bufs  []tiers.Buffer // per worker
}

var _ Routine = (*Ceiling)(nil)

// Prepare gives each worker its buffer and writes the files to read. They take half of the tier
// at most.
func (r *Ceiling) Prepare(ctx context.Context, b *Bench) (err error) {
	if r.shelf.level, err = b.Level(tiers.Storage); err != nil {
		return err
	}
	chunk, streams, footprint := int64(b.Pool.Size()), int64(b.Workers), r.shelf.level.Capacity/2
	// Two files per worker and as many again to read must fit.
	r.size = max(chunk, min(r.FileSize, footprint/(4*streams))/chunk*chunk)
	r.bench, r.move, r.mix.share = b, r.whole, r.ReadShare
	if r.mover, err = newMover(b.Env, r.shelf.level, "ceiling/"); err != nil {
		return err
	}
	if r.bufs, err = b.Pool.Get(ctx, b.Workers, nil); err != nil {
		return err
	}
	r.mover.fill(r.bufs)
	files := 0
	if r.ReadShare > 0 {
		files = int(max(1, min(2*streams, footprint/2/r.size)))
	}
	return r.shelf.fill(ctx, b, files, b.Workers)
}

// Finish gives the buffers back.
func (r *Ceiling) Finish(b *Bench) {
	b.Pool.Put(r.bufs...)
}

// Step reads or writes one whole file, whichever keeps the mix.
func (r *Ceiling) Step(ctx context.Context, b *Bench, worker int) error {
	return r.step(ctx, b, worker, r.mix.next(r.size, r.size))
}

// whole reads or writes a whole file, one request at a time: how many are in flight is the number
// of workers, which the benchmark sets to what a run with requests has.
func (r *Ceiling) whole(ctx context.Context, worker int, l cache.Level, op tiers.Op,
	o tiers.Object) (took tiers.Timing, err error) {
	start := r.env.Clock.Now()
	count := func(c tiers.Chunk) bool {
		c.Op = op
		r.bench.Chunk(worker, l.Kind, c)
		return true
	}
	if op == tiers.Read {
		err = r.read(ctx, r.bufs[worker], o, 0, count)
	} else {
		err = r.write(ctx, r.bufs[worker], o, count)
	}
	return tiers.Timing{Device: r.env.Clock.Now() - start}, err
}
