package plainio

import (
	"context"
	bin "encoding/binary"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"

	"kvbench/tiers"
	"kvbench/tiers/cache"
	"kvbench/tiers/transfer"
	"kvbench/workloads"
)

func phaseOf(op tiers.Op) tiers.Phase {
	if op == tiers.Write {
		return tiers.Prefill
	}
	return tiers.Decode
}

func purposeOf(op tiers.Op) workloads.Purpose {
	if op == tiers.Write {
		return workloads.ForPrefill
	}
	return workloads.ForDecodeRead
}

// Tier reads or writes entries of one size in one tier, through the same
// transfer as the cache uses, without cache, queue or requests.
type Tier struct {
	Level tiers.Kind
	Op    tiers.Op
	Size  int64 // bytes per entry
	Seed  uint64
	// Footprint bounds the bytes that lie in the tier; 0 = half of its capacity.
	Footprint int64

	mu      sync.Mutex
	objects []tiers.Object // committed, oldest first
	keep    int
}

// Prepare fills the tier for reading.
func (r *Tier) Prepare(ctx context.Context, b *Bench) error {
	tier, capacity := b.Tier(r.Level)
	if tier == nil {
		return fmt.Errorf("the run has no %s tier", r.Level)
	}
	if r.Footprint == 0 || r.Footprint > capacity/2 {
		r.Footprint = capacity / 2
	}
	r.keep = int(r.Footprint / r.Size)
	if r.keep < b.Workers+1 {
		return fmt.Errorf("%w: %d workers with entries of %d bytes need at least %d bytes of the %s tier, it has %d",
			cache.ErrTooLarge, b.Workers, r.Size, 2*int64(b.Workers+1)*r.Size, r.Level, capacity)
	}
	if r.Op == tiers.Write {
		return nil
	}
	for range r.keep {
		o := r.object(b)
		if _, _, err := b.Transfer.Write(ctx, tier, nil, o); err != nil {
			return fmt.Errorf("filling the %s tier: %w", r.Level, err)
		}
		r.objects = append(r.objects, o)
	}
	return nil
}

func (r *Tier) object(b *Bench) tiers.Object {
	gen := b.Gen()
	return tiers.Object{Key: fmt.Sprintf("tier/%d", gen), Gen: gen, Size: r.Size}
}

// Step reads a random entry, or writes a new one and deletes the oldest beyond
// the footprint.
func (r *Tier) Step(ctx context.Context, b *Bench, worker int) error {
	tier, _ := b.Tier(r.Level)
	count := func(op tiers.Op, n int64) { b.Chunk(worker, r.Level, op, n) }
	if r.Op == tiers.Read {
		o := r.objects[rand.IntN(len(r.objects))]
		_, t, err := b.Transfer.Read(ctx, tier, count, o)
		if err == nil {
			b.Done(worker, r.Level, r.Op, o, t)
		}
		return err
	}
	if old, ok := r.oldest(b.Workers); ok {
		if err := tier.Remove(ctx, old); err != nil {
			return err
		}
	}
	o := r.object(b)
	_, t, err := b.Transfer.Write(ctx, tier, count, o)
	if err != nil {
		return err
	}
	b.Done(worker, r.Level, r.Op, o, t)
	r.mu.Lock()
	r.objects = append(r.objects, o)
	r.mu.Unlock()
	return nil
}

// oldest takes the entry that has to go before another is written: every worker
// may be writing one beside those that are kept.
func (r *Tier) oldest(workers int) (tiers.Object, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.objects) == 0 || len(r.objects)+workers <= r.keep {
		return tiers.Object{}, false
	}
	o := r.objects[0]
	r.objects = r.objects[1:]
	return o, true
}

// Ceiling is plain sequential I/O of the storage tier's files with the same
// chunk and concurrency: no cache, no queue, no data generation beyond a stamp
// that keeps every 4 KiB block unique. What the engine moves is to be compared
// with it.
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

// Prepare writes the files to read and gives each worker its buffer.
func (r *Ceiling) Prepare(ctx context.Context, b *Bench) error {
	tier, capacity := b.Tier(tiers.Storage)
	if r.Footprint == 0 || r.Footprint > capacity {
		r.Footprint = capacity / 2
	}
	chunk := int64(b.Pool.Size())
	streams := int64(b.Workers)
	// Two files per worker and as many again to read must fit.
	r.FileSize = max(chunk, min(r.FileSize, r.Footprint/(4*streams))/chunk*chunk)
	r.last = make([]tiers.Object, b.Workers)
	base := tiers.Object{Key: "ceiling", Gen: b.Gen(), Size: chunk}
	for range b.Workers {
		buf, err := b.Pool.Get(ctx, 1, nil)
		if err != nil {
			return err
		}
		b.Content.Fill(buf[0].B, base, 0)
		r.bufs = append(r.bufs, buf[0])
	}
	if r.ReadShare == 0 {
		return nil
	}
	var wg sync.WaitGroup
	errs := make(chan error, b.Workers)
	files := make([]tiers.Object, max(1, min(2*streams, r.Footprint/2/r.FileSize)))
	var next atomic.Int64
	for w := range b.Workers {
		wg.Go(func() {
			for n := next.Add(1) - 1; n < int64(len(files)); n = next.Add(1) - 1 {
				files[n] = r.object(b)
				if err := r.writeFile(ctx, b, tier, w, files[n], nil); err != nil {
					errs <- err
					return
				}
			}
		})
	}
	wg.Wait()
	r.files = files
	select {
	case err := <-errs:
		return fmt.Errorf("writing the files to read: %w", err)
	default:
		return nil
	}
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
func (r *Ceiling) Step(ctx context.Context, b *Bench, worker int) error {
	tier, _ := b.Tier(tiers.Storage)
	if r.reads() {
		return r.readFile(ctx, b, tier, worker)
	}
	if old := r.last[worker]; old.Size > 0 {
		r.last[worker] = tiers.Object{}
		if err := tier.Remove(ctx, old); err != nil {
			return err
		}
	}
	o := r.object(b)
	start := b.Clock.Now()
	err := r.writeFile(ctx, b, tier, worker, o, func(n int64) { b.Chunk(worker, tiers.Storage, tiers.Write, n) })
	if err != nil {
		return err
	}
	r.last[worker] = o
	b.Done(worker, tiers.Storage, tiers.Write, o, tiers.Timing{Device: b.Clock.Now() - start})
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

func (r *Ceiling) readFile(ctx context.Context, b *Bench, tier tiers.Tier, worker int) (err error) {
	o := r.files[rand.IntN(len(r.files))]
	start := b.Clock.Now()
	f, err := tier.Open(ctx, o)
	if err != nil {
		return err
	}
	defer func() {
		if cerr := f.Close(); err == nil {
			err = cerr
		}
	}()
	io := &tiers.IO{Buf: r.bufs[worker], N: len(r.bufs[worker].B)}
	for ; io.Off < o.Size; io.Off += int64(io.N) {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := transfer.Do(ctx, b.Clock, f, io); err != nil {
			return err
		}
		b.Chunk(worker, tiers.Storage, tiers.Read, int64(io.N))
	}
	b.Done(worker, tiers.Storage, tiers.Read, o, tiers.Timing{Device: b.Clock.Now() - start})
	return nil
}

func (r *Ceiling) writeFile(ctx context.Context, b *Bench, tier tiers.Tier, worker int, o tiers.Object, count func(int64)) error {
	f, err := tier.Create(ctx, o)
	if err != nil {
		return err
	}
	late := tier.Traits().CountsAtCommit
	io := &tiers.IO{Buf: r.bufs[worker], N: len(r.bufs[worker].B)}
	for ; io.Off < o.Size; io.Off += int64(io.N) {
		if err = ctx.Err(); err == nil {
			r.stampBlocks(io.Buf.B)
			err = transfer.Do(ctx, b.Clock, f, io)
		}
		if err != nil {
			_ = f.Abort()
			return err
		}
		if count != nil && !late {
			count(int64(io.N))
		}
	}
	if err := f.Commit(ctx); err != nil {
		return err
	}
	if count != nil && late {
		count(o.Size)
	}
	return nil
}

// stampBlocks makes every 4 KiB block unlike any other at the cost of one store.
func (r *Ceiling) stampBlocks(buf []byte) {
	blocks := uint64(len(buf) / 4096)
	n := r.stamp.Add(blocks)
	for i := range blocks {
		bin.LittleEndian.PutUint64(buf[i*4096:], n-i)
	}
}

var (
	_ Routine = (*Tier)(nil)
	_ Routine = (*Ceiling)(nil)
)
