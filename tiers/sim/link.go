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

// bare is what a tier without bytes has nothing to say about.
type bare struct{}

// Space is without end, so nobody can say.
func (bare) Space(context.Context) (tiers.Space, error) {
	return tiers.Space{}, errors.ErrUnsupported
}

// Close does nothing.
func (bare) Close() error { return nil }

// Link simulates a GPU's memory behind its link to the host: it keeps no bytes, and every
// transfer takes the time that they would take on a link of the given bandwidth, one such link
// in each direction, shared by all transfers in the order of coming. Capacity is the cache's
// affair.
type Link struct {
	bare
	clock     clock.Clock
	bandwidth float64
	links     [tiers.NumOps]link
	Free      bool // nothing takes time: filling before the load; in virtual time only

	mu sync.Mutex
	// held is what opening or removing something that is not there is told by: an error, as in any
	// other tier.
	held map[tiers.ID]struct{}
}

var _ tiers.Tier = (*Link)(nil)

// NewLink returns an empty one. Bandwidth is in bytes per second in each direction.
func NewLink(bandwidth float64, c clock.Clock) (*Link, error) {
	if !(bandwidth > 0) {
		return nil, fmt.Errorf("simulate a gpu with %g bytes/s: "+
			"the bandwidth must be positive (-gpu-bandwidth-gbps)", bandwidth)
	}
	return &Link{clock: c, bandwidth: bandwidth, held: make(map[tiers.ID]struct{})}, nil
}

// Traits: no data, and one request for all of it: transfers pass the link one after the other.
func (t *Link) Traits() tiers.Traits {
	return tiers.Traits{
		Chunk: math.MaxInt, Align: 1,
		Description: fmt.Sprintf("simulated, %.1f GiB/s each way", t.bandwidth/(1<<30)),
	}
}

func fail(op string, o tiers.Object, err error) error {
	return &tiers.OpError{Op: op, Path: "simulated tier", Key: o.Key, Offset: -1, Err: err}
}

// Create begins an entry.
func (t *Link) Create(_ context.Context, objs ...tiers.Object) (tiers.Writer, error) {
	return &linkIO{tier: t, o: objs[0], link: &t.links[tiers.Write]}, nil
}

// Open finds an entry.
func (t *Link) Open(_ context.Context, objs ...tiers.Object) (tiers.Reader, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, ok := t.held[objs[0].ID()]; !ok {
		return nil, fail("open", objs[0], tiers.ErrNotFound)
	}
	return &linkIO{tier: t, o: objs[0], link: &t.links[tiers.Read]}, nil
}

// Remove forgets objects.
func (t *Link) Remove(_ context.Context, objs ...tiers.Object) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	var errs []error
	for _, o := range objs {
		if _, ok := t.held[o.ID()]; !ok {
			errs = append(errs, fail("remove", o, tiers.ErrNotFound))
		}
		delete(t.held, o.ID())
	}
	return errors.Join(errs...)
}

// linkIO is a writer or reader of one object.
type linkIO struct {
	tiers.One
	tier *Link
	o    tiers.Object
	link *link
}

// Submit is done when the bytes have passed the link. The link has them from the beginning: what
// waits, waits in it.
func (l *linkIO) Submit(io *tiers.IO) {
	if l.tier.Free {
		io.End(nil)
		return
	}
	passes := time.Duration(float64(io.N) / l.tier.bandwidth * float64(time.Second))
	io.Begun = l.tier.clock.Now()
	io.Ended = l.link.reserve(io.Begun, passes)
	l.tier.clock.At(io.Ended, func() { io.End(nil) })
}

// Commit lets the object be found.
func (l *linkIO) Commit(context.Context) error {
	t := l.tier
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, ok := t.held[l.o.ID()]; ok {
		return fail("create", l.o, tiers.ErrExists)
	}
	t.held[l.o.ID()] = struct{}{}
	return nil
}

func (*linkIO) Abort() error { return nil }
func (*linkIO) Close() error { return nil }

// link is one direction: a queue of transfers known by the time at which it will be empty.
type link struct {
	mu   sync.Mutex
	free time.Duration
}

// reserve queues bytes that take so long and returns when the last of them has arrived.
func (l *link) reserve(now, passes time.Duration) (ended time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.free = max(l.free, now) + passes
	return l.free
}
