package plainio

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"kvbench/tiers"
	"kvbench/tiers/transfer"
)

// Ceiling is plain sequential I/O of the storage tier's files with the same
// chunk and concurrency: no cache, no queue, no data generation beyond a stamp
// that keeps every 4 KiB block unique. What the engine moves is to be compared
// with it, so it goes past the engine's own transfer.
type Ceiling struct {
	ReadShare float64 // of the bytes: 0 writes only, 1 reads only
	FileSize  int64
	Footprint int64 // bytes on the storage tier at most; 0 = half of its capacity

	files       []tiers.Object // read, never deleted
	read, wrote atomic.Int64
	last        []tiers.Object // per worker: its latest file
	bufs        []tiers.Buffer // per worker
	stamp       atomic.Uint64
}

var _ Routine = (*Ceiling)(nil)

// Prepare writes the files to read and gives each worker its buffer.
func (r *Ceiling) Prepare(ctx context.Context, b *Bench) (err error) {
	tier, capacity := b.Tier(tiers.Storage)
	if r.Footprint == 0 || r.Footprint > capacity {
		r.Footprint = capacity / 2
	}
	chunk := int64(b.Pool.Size())
	streams := int64(b.Workers)
	// Two files per worker and as many again to read must fit.
	r.FileSize = max(chunk, min(r.FileSize, r.Footprint/(4*streams))/chunk*chunk)
	r.last = make([]tiers.Object, b.Workers)
	if r.bufs, err = b.Pool.Get(ctx, b.Workers, nil); err != nil {
		return err
	}
	base := tiers.Object{Key: "ceiling", Gen: b.Gen(), Size: chunk}
	for _, buf := range r.bufs {
		b.Content.Fill(buf.B, base, 0) // under the stamps lies what no device can compress
	}
	if r.ReadShare == 0 {
		return nil
	}
	r.files = make([]tiers.Object, max(1, min(2*streams, r.Footprint/2/r.FileSize)))
	group, ctx := errgroup.WithContext(ctx)
	for w := range b.Workers {
		group.Go(func() error {
			for n := w; n < len(r.files); n += b.Workers {
				r.files[n] = r.object(b)
				if err := r.writeFile(ctx, b, tier, w, r.files[n], func(int64) {}); err != nil {
					return fmt.Errorf("writing the files to read: %w", err)
				}
			}
			return nil
		})
	}
	return group.Wait()
}

// Finish gives the buffers back.
func (r *Ceiling) Finish(b *Bench) {
	b.Pool.Put(r.bufs...)
	r.bufs = nil
}

func (r *Ceiling) object(b *Bench) tiers.Object {
	gen := b.Gen()
	return tiers.Object{Key: fmt.Sprintf("ceiling/%d", gen), Gen: gen, Size: r.FileSize}
}

// Step reads or writes one whole file, whichever keeps the mix.
func (r *Ceiling) Step(ctx context.Context, b *Bench, worker int) (err error) {
	tier, _ := b.Tier(tiers.Storage)
	op, o := tiers.Write, r.object(b)
	if r.reads() {
		op, o = tiers.Read, r.files[rand.IntN(len(r.files))]
	} else if old := r.last[worker]; old.Size > 0 {
		r.last[worker] = tiers.Object{}
		if err := tier.Remove(ctx, old); err != nil {
			return err
		}
	}
	start := b.Clock.Now()
	count := func(n int64) { b.Chunk(worker, tiers.Storage, op, n) }
	if op == tiers.Read {
		err = r.readFile(ctx, b, tier, worker, o, count)
	} else if err = r.writeFile(ctx, b, tier, worker, o, count); err == nil {
		r.last[worker] = o
	}
	if err != nil {
		return err
	}
	b.Done(worker, tiers.Storage, op, o, tiers.Timing{Device: b.Clock.Now() - start})
	return nil
}

// reads decides for the direction that is behind its share and counts the file
// at once, so that parallel workers do not all choose the same.
func (r *Ceiling) reads() bool {
	read, wrote := float64(r.read.Load()), float64(r.wrote.Load())
	if r.ReadShare >= 1 || (r.ReadShare > 0 && read <= (read+wrote)*r.ReadShare) {
		r.read.Add(1)
		return true
	}
	r.wrote.Add(1)
	return false
}

// readFile reads a whole file and drops what it read: nothing is verified here.
func (r *Ceiling) readFile(
	ctx context.Context, b *Bench, tier tiers.Tier, worker int, o tiers.Object, count func(int64),
) error {
	f, err := tier.Open(ctx, o)
	if err != nil {
		return err
	}
	return errors.Join(r.pass(ctx, b, f, worker, func([]byte) {}, count), f.Close())
}

// writeFile writes a whole file. Bytes that count at the commit alone, behind a page cache, are
// told then.
func (r *Ceiling) writeFile(
	ctx context.Context, b *Bench, tier tiers.Tier, worker int, o tiers.Object, count func(int64),
) error {
	f, err := tier.Create(ctx, o)
	if err != nil {
		return err
	}
	late := func(int64) {}
	if tier.Traits().CountsAtCommit {
		late, count = count, late
	}
	if err := r.pass(ctx, b, f, worker, r.stampBlocks, count); err != nil {
		return errors.Join(err, f.Abort())
	}
	if err := f.Commit(ctx); err != nil {
		return err
	}
	late(o.Size)
	return nil
}

// pass moves a file chunk by chunk through the worker's buffer, one request at a time: how many are
// in flight is the number of workers, which the benchmark sets to what a run with requests has.
func (r *Ceiling) pass(
	ctx context.Context, b *Bench, f tiers.Submitter, worker int, prepare func([]byte),
	count func(int64),
) error {
	io := &tiers.IO{Buf: r.bufs[worker], N: len(r.bufs[worker].B)}
	return transfer.Pass(ctx, b.Clock, f, io, r.FileSize, prepare, count)
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
