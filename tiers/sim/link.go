package sim

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"kvbench/tiers"
	"kvbench/tiers/clock"
)

// Link simulates a GPU's memory behind its link to the host: it keeps no bytes, and every transfer takes the
// time that they would take on a link of the given bandwidth, one such link in each direction, shared by all
// transfers in the order of coming. Capacity is the cache's affair.
type Link struct {
	bandwidth float64
	clock     clock.Clock
	links     [tiers.NumOps]link
	index     index
}

var _ tiers.Tier = (*Link)(nil)

// NewLink returns an empty one. Bandwidth is in bytes per second in each direction.
func NewLink(bandwidth float64, c clock.Clock) (*Link, error) {
	if !(bandwidth > 0) {
		return nil, fmt.Errorf("simulate a gpu with %g bytes/s: the bandwidth must be positive (-gpu-bandwidth-gbps)", bandwidth)
	}
	return &Link{bandwidth: bandwidth, clock: c}, nil
}

// Traits: no data, and one request for all of it: transfers pass the link one after the other.
func (t *Link) Traits() tiers.Traits {
	return tiers.Traits{
		Chunk: math.MaxInt, Align: 1, Description: fmt.Sprintf("simulated, %.1f GB/s each way", t.bandwidth/1e9),
	}
}

// Create begins an entry.
func (t *Link) Create(_ context.Context, objs ...tiers.Object) (tiers.Writer, error) {
	return &linkIO{tier: t, o: objs[0], op: tiers.Write}, nil
}

// Open finds an entry.
func (t *Link) Open(_ context.Context, objs ...tiers.Object) (tiers.Reader, error) {
	if err := t.index.has(objs[0], "gpu tier"); err != nil {
		return nil, err
	}
	return &linkIO{tier: t, o: objs[0], op: tiers.Read}, nil
}

// Remove forgets entries.
func (t *Link) Remove(_ context.Context, objs ...tiers.Object) error {
	return t.index.remove(objs, "gpu tier")
}

// Space is the cache's to know.
func (t *Link) Space(context.Context) (tiers.Space, error) {
	return tiers.Space{}, errors.ErrUnsupported
}

// Close does nothing.
func (t *Link) Close() error { return nil }

type linkIO struct {
	tiers.One
	tier *Link
	o    tiers.Object
	op   tiers.Op
}

// Submit is done when the bytes have passed the link.
func (l *linkIO) Submit(io *tiers.IO) {
	c := l.tier.clock
	io.Begun, io.Ended = l.tier.links[l.op].reserve(c.Now(), int64(io.N), l.tier.bandwidth)
	c.At(io.Ended, func() { io.End(nil) })
}

func (l *linkIO) Commit(context.Context) error { return l.tier.index.add(l.o, "gpu tier") }
func (*linkIO) Abort() error                   { return nil }
func (*linkIO) Close() error                   { return nil }

// link is one direction: a queue of transfers known by the time at which it will be empty.
type link struct {
	mu   sync.Mutex
	free time.Duration
}

// reserve queues n bytes and returns when the first of them begins to pass and the last has arrived.
func (l *link) reserve(now time.Duration, n int64, bandwidth float64) (begun, ended time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	begun = max(l.free, now)
	l.free = begun + time.Duration(float64(n)/bandwidth*float64(time.Second))
	return begun, l.free
}
