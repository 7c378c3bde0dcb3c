package sim

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	"kvbench/tiers"
	"kvbench/tiers/clock"
)

// Link simulates a GPU's memory behind its link to the host: it keeps no bytes, and every
// transfer takes the time that they would take on a link of the given bandwidth, one such link
// in each direction, shared by all transfers in the order of coming. Capacity is the cache's
// affair.
type Link struct {
	table
	clock clock.Clock
	links [tiers.NumOps]link
}

var _ tiers.Tier = (*Link)(nil)

// NewLink returns an empty one. Bandwidth is in bytes per second in each direction.
func NewLink(bandwidth float64, c clock.Clock) (*Link, error) {
	if !(bandwidth > 0) {
		return nil, fmt.Errorf("simulate a gpu with %g bytes/s: "+
			"the bandwidth must be positive (-gpu-bandwidth-gbps)", bandwidth)
	}
	t := &Link{clock: c}
	for op := range t.links {
		t.links[op].bandwidth = bandwidth
	}
	return t, nil
}

// Traits: no data, and one request for all of it: transfers pass the link one after the other.
func (t *Link) Traits() tiers.Traits {
	return tiers.Traits{
		Chunk: math.MaxInt, Align: 1,
		Description: fmt.Sprintf("simulated, %.1f GB/s each way",
			t.links[tiers.Read].bandwidth/1e9),
	}
}

// Create begins an entry.
func (t *Link) Create(_ context.Context, objs ...tiers.Object) (tiers.Writer, error) {
	return &linkIO{handle{table: &t.table, o: objs[0]}, t.clock, &t.links[tiers.Write]}, nil
}

// Open finds an entry.
func (t *Link) Open(_ context.Context, objs ...tiers.Object) (tiers.Reader, error) {
	h, err := t.open(objs[0])
	if err != nil {
		return nil, err
	}
	return &linkIO{h, t.clock, &t.links[tiers.Read]}, nil
}

type linkIO struct {
	handle
	clock clock.Clock
	link  *link
}

// Submit is done when the bytes have passed the link.
func (l *linkIO) Submit(io *tiers.IO) {
	io.Begun, io.Ended = l.link.reserve(l.clock.Now(), int64(io.N))
	l.clock.At(io.Ended, func() { io.End(nil) })
}

// link is one direction: a queue of transfers known by the time at which it will be empty.
type link struct {
	bandwidth float64
	mu        sync.Mutex
	free      time.Duration
}

// reserve queues n bytes and returns when the first of them begins to pass and the last has
// arrived.
func (l *link) reserve(now time.Duration, n int64) (begun, ended time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	begun = max(l.free, now)
	l.free = begun + time.Duration(float64(n)/l.bandwidth*float64(time.Second))
	return begun, l.free
}
