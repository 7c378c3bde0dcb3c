package plainio

import (
	"context"
	"encoding/binary"
	"errors"
	"sync/atomic"

	"kvbench/tiers"
	"kvbench/tiers/cache"
	"kvbench/tiers/transfer"
)

// Ceiling is plain sequential I/O of the storage tier's files with the same
// chunk and concurrency: no cache, no queue, no data generation beyond a stamp
// that keeps every 4 KiB block unique. What the engine moves is to be compared
// with it, so it goes past the engine's own transfer.
type Ceiling struct {
	ReadShare float64 // of the bytes: 0 writes only, 1 reads only
	FileSize  int64

	shelf
	bench *Bench
	begun [tiers.NumOps]atomic.Int64 // files
	bufs  []tiers.Buffer             // per worker
	stamp atomic.Uint64
}

var _ Routine = (*Ceiling)(nil)

// Prepare gives each worker its buffer and writes the files to read. They take half of the tier
// at most.
func (r *Ceiling) Prepare(ctx context.Context, b *Bench) (err error) {
	if r.level, err = b.Level(tiers.Storage); err != nil {
		return err
	}
	chunk, streams, footprint := int64(b.Pool.Size()), int64(b.Workers), r.level.Capacity/2
	// Two files per worker and as many again to read must fit.
	r.size = max(chunk, min(r.FileSize, footprint/(4*streams))/chunk*chunk)
	r.bench, r.move = b, r.transfer
	if r.bufs, err = b.Pool.Get(ctx, b.Workers, nil); err != nil {
		return err
	}
	base := tiers.Object{Key: "ceiling", Gen: b.gen.Add(1), Size: chunk}
	for _, buf := range r.bufs {
		b.Content.Fill(buf.B, base, 0) // under the stamps lies what no device can compress
	}
	files := 0
	if r.ReadShare > 0 {
		files = int(max(1, min(2*streams, footprint/2/r.size)))
	}
	return r.fill(ctx, b, files, b.Workers)
}

// Finish gives the buffers back.
func (r *Ceiling) Finish(b *Bench) {
	b.Pool.Put(r.bufs...)
}

// Step reads or writes one whole file, whichever keeps the mix.
func (r *Ceiling) Step(ctx context.Context, b *Bench, worker int) error {
	return r.step(ctx, b, worker, r.next())
}

// next decides for the direction that is behind its share and counts the file
// at once, so that parallel workers do not all choose the same.
func (r *Ceiling) next() (op tiers.Op) {
	read, wrote := float64(r.begun[tiers.Read].Load()), float64(r.begun[tiers.Write].Load())
	op = tiers.Write
	if r.ReadShare > 0 && read <= (read+wrote)*r.ReadShare {
		op = tiers.Read
	}
	r.begun[op].Add(1)
	return op
}

// transfer reads or writes a whole file, chunk by chunk through the worker's buffer, one request at
// a time: how many are in flight is the number of workers, which the benchmark sets to what a run
// with requests has. What was read is dropped: nothing is verified here. Bytes that count at the
// commit alone, behind a page cache, are told then.
func (r *Ceiling) transfer(ctx context.Context, worker int, l cache.Level, op tiers.Op,
	o tiers.Object) (took tiers.Timing, err error) {
	b, start := r.bench, r.bench.Clock.Now()
	defer func() { took.Device = b.Clock.Now() - start }()
	late := l.Tier.Traits().CountsAtCommit && op == tiers.Write
	pass := func(f tiers.Submitter, prepare func([]byte)) error {
		io := &tiers.IO{Buf: r.bufs[worker], N: len(r.bufs[worker].B)}
		return transfer.Pass(ctx, b.Clock, f, io, o.Size, prepare, func(c tiers.Chunk) {
			if c.Op = op; late {
				c.Bytes = 0
			}
			b.Chunk(worker, l.Kind, c)
		})
	}
	if op == tiers.Read {
		f, err := l.Tier.Open(ctx, o)
		if err != nil {
			return took, err
		}
		return took, errors.Join(pass(f, func([]byte) {}), f.Close())
	}
	f, err := l.Tier.Create(ctx, o)
	if err != nil {
		return took, err
	}
	if err := pass(f, r.stampBlocks); err != nil {
		return took, errors.Join(err, f.Abort())
	}
	flush := tiers.Chunk{Op: op, Flush: true, Begun: b.Clock.Now()}
	if err := f.Commit(ctx); err != nil {
		return took, err
	}
	flush.Asked, flush.Ended, flush.Done = flush.Begun, b.Clock.Now(), b.Clock.Now()
	if late {
		flush.Bytes = o.Size
	}
	b.Chunk(worker, l.Kind, flush)
	return took, nil
}

// stampBlocks makes every 4 KiB block unlike any other at the cost of one store: drives and
// filesystems that deduplicate find nothing, and no time goes into data.
func (r *Ceiling) stampBlocks(buf []byte) {
	blocks := uint64(len(buf) / 4096)
	n := r.stamp.Add(blocks)
	for i := range blocks {
		binary.LittleEndian.PutUint64(buf[i*4096:], n-i)
	}
}
