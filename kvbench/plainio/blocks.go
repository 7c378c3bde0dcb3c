package plainio

import (
	"context"

	"kvbench/kvbench"
	"kvbench/kvbench/result"
	"kvbench/tiers"
	"kvbench/workloads/users"
)

// Blocks reads or writes blocks of one size at random places inside the storage tier's files, one
// request each, and one in flight per worker. A completed request is followed by the next in the
// same buffer and goroutine, as in Ceiling.
type Blocks struct {
	Op   tiers.Op
	Size int64 // bytes of a block: a power of two of 4096 at least
	// Footprint is the bytes of all files; 0 = half of the tier.
	Footprint int64

	*field
	bench *Bench
	lease *lease // the workers' buffers
	draws []users.Stream
	drawn []int64
}

var _ Routine = (*Blocks)(nil)

// Prepare writes the files and gives each worker its buffer.
func (r *Blocks) Prepare(ctx context.Context, b *Bench) error {
	if err := r.lay(b, r.Size); err != nil {
		return err
	}
	if err := r.fill(ctx, r.Footprint, 0); err != nil {
		return err
	}
	return r.equip(ctx)
}

// lay makes the field, without files, for requests of so many bytes at most.
func (r *Blocks) lay(b *Bench, most int64) error {
	level, err := b.Level(tiers.Storage)
	if err != nil {
		return err
	}
	if r.Footprint == 0 {
		r.Footprint = level.Capacity / 2
	}
	r.bench = b
	r.field, err = newField(b.Env, level, r.Op, most, r.Footprint)
	return err
}

// equip gives each worker a buffer, and its random stream: the places it reads follow from the
// seed.
func (r *Blocks) equip(ctx context.Context) (err error) {
	if r.lease, err = r.buffers(ctx, r.bench.Workers, r.Size); err != nil {
		return err
	}
	r.drawn = make([]int64, r.bench.Workers)
	for w := range r.bench.Workers {
		r.draws = append(r.draws, users.NewStream(r.bench.Seed, w))
	}
	return nil
}

// Step is all requests of a worker.
func (r *Blocks) Step(ctx context.Context, b *Bench, worker int) error {
	// A local copy, so that workers do not share a cache line.
	n := r.drawn[worker]
	defer func() { r.drawn[worker] = n }()
	next := r.anywhere(r.draws[worker], &n, r.Size, b.over.Load)
	return r.lease.bufs[worker].pass(ctx, b.Clock, &tiers.IO{}, next, func(c tiers.Chunk) bool {
		c.Op = r.Op
		b.Block(worker, c)
		return true
	})
}

// Climber is the sweep after the routine's window: the same requests, in the same files.
func (r *Blocks) Climber() kvbench.Climber {
	return func(ctx context.Context, e *kvbench.Env, l kvbench.Ladder) ([]result.Rung, error) {
		return climbIn(ctx, e, l, r)
	}
}

// Finish releases files and buffers.
func (r *Blocks) Finish(*Bench) {
	_ = r.lease.free() // memory that is ours alone
	r.lease = nil
	if r.field != nil {
		_ = r.close() // of files that the run removes
	}
}

// Report says what was used.
func (r *Blocks) Report(res *result.Result) {
	res.PlainIO = &result.PlainIO{FootprintBytes: r.Footprint, BlockBytes: r.Size}
	res.IO.WriteDevice = result.WriteDeviceRequest
	if r.field == nil {
		return
	}
	res.PlainIO.FileBytes = r.size
	r.pool(res, r.lease, r.Size)
}
