package sim

import (
	"context"
	"fmt"
	"sync"
	"time"

	"kvbench/tiers"
)

// Link simulates a GPU's memory behind its link to the host: it keeps no bytes, and every transfer takes the
// time that they would take on a link of the given bandwidth, one such link in each direction, shared by all
// transfers in the order of coming. Capacity is the Cache's affair.
type Link struct {
	bandwidth float64
	sleep     func(context.Context, time.Duration) error
	links     [tiers.NumOps]link
	index     index
}

var _ tiers.Tier = (*Link)(nil)

// NewLink returns an empty one. Bandwidth is in bytes per second in each direction. Sleep waits, and returns the context's error when that ends first; now is
// the clock that sleep goes by.
func NewLink(bandwidth float64, sleep func(context.Context, time.Duration) error, now func() time.Duration) (*Link, error) {
	if !(bandwidth > 0) {
		return nil, fmt.Errorf("simulate a gpu with %g bytes/s: the bandwidth must be positive (-gpu-bandwidth-gbps)", bandwidth)
	}
	t := &Link{bandwidth: bandwidth, sleep: sleep}
	for op := range t.links {
		t.links[op] = link{bandwidth: bandwidth, now: now}
	}
	return t, nil
}

// Traits: no data, so transfers pass no bytes but Skip their time.
func (t *Link) Traits() tiers.Traits {
	return tiers.Traits{NoData: true, Align: 1, Description: fmt.Sprintf("simulated, %.1f GB/s each way", t.bandwidth/1e9)}
}

// Create begins an entry.
func (t *Link) Create(_ context.Context, o tiers.Object) (tiers.Writer, error) {
	return &gpuIO{tier: t, o: o, op: tiers.Write}, nil
}

// Open finds an entry.
func (t *Link) Open(_ context.Context, o tiers.Object) (tiers.Reader, error) {
	if err := t.index.has(o, "gpu tier"); err != nil {
		return nil, err
	}
	return &gpuIO{tier: t, o: o, op: tiers.Read}, nil
}

// Remove forgets an entry.
func (t *Link) Remove(_ context.Context, o tiers.Object) error { return t.index.remove(o, "gpu tier") }

// Close does nothing.
func (t *Link) Close() error { return nil }

type gpuIO struct {
	tier *Link
	o    tiers.Object
	op   tiers.Op
}

var _ tiers.Skipper = (*gpuIO)(nil)

// Skip waits for n bytes to have passed the link.
func (g *gpuIO) Skip(ctx context.Context, n int64) error {
	if err := ctx.Err(); err != nil {
		return tiers.Canceled(ctx, g.o)
	}
	if err := g.tier.sleep(ctx, g.tier.links[g.op].reserve(n)); err != nil {
		return fmt.Errorf("entry %s: %w", g.o.Key, err)
	}
	return nil
}

func (g *gpuIO) WriteAt(ctx context.Context, p []byte, _ int64) error {
	return g.Skip(ctx, int64(len(p)))
}

// ReadAt leaves p as it is: the tier holds no bytes (Traits.NoData).
func (g *gpuIO) ReadAt(ctx context.Context, p []byte, _ int64) error {
	return g.Skip(ctx, int64(len(p)))
}

func (g *gpuIO) Commit(context.Context) error { return g.tier.index.add(g.o, "gpu tier") }
func (*gpuIO) Abort() error                   { return nil }
func (*gpuIO) Close() error                   { return nil }

// link is one direction: a queue of transfers known by the time at which it will be empty.
type link struct {
	bandwidth float64
	now       func() time.Duration
	mu        sync.Mutex
	free      time.Duration
}

// reserve queues n bytes and returns how long it takes until the last of them has arrived.
func (l *link) reserve(n int64) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	l.free = max(l.free, now) + time.Duration(float64(n)/l.bandwidth*float64(time.Second))
	return l.free - now
}
