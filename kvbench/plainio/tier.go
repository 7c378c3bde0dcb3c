package plainio

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"

	"kvbench/tiers"
	"kvbench/tiers/cache"
	"kvbench/workloads"
)

// phaseOf and purposeOf give an operation without a request its place in the result: writes are
// what prefill is, reads what decoding is.
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
	// Footprint bounds the bytes that lie in the tier; 0 = half of its capacity. It is
	// many times an entry, lest a drive's own memory serves all reads.
	Footprint int64

	mu      sync.Mutex
	objects []tiers.Object // committed, oldest first
	keep    int
}

// Prepare fills the tier for reading. Of a write benchmark the tier starts empty, and entries
// beyond the footprint are deleted as new ones come, as a cache that is full does.
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
		return fmt.Errorf("%w: %d workers with entries of %d bytes need at least %d bytes of the "+
			"%s tier, it has %d",
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

// object is a new one: keys are never written again, as with content-addressed entries.
func (r *Tier) object(b *Bench) tiers.Object {
	gen := b.Gen()
	return tiers.Object{Key: fmt.Sprintf("tier/%d", gen), Gen: gen, Size: r.Size}
}

// Step reads a random entry, or writes a new one and deletes the oldest beyond
// the footprint.
//
// Entries are read in random order: in that of their writing a drive would read ahead.
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

var _ Routine = (*Tier)(nil)
