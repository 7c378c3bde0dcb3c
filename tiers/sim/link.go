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

// bare has the methods that all tiers without bytes share.
type bare struct{}

// Space returns errors.ErrUnsupported: the capacity has no limit.
func (bare) Space(context.Context) (tiers.Space, error) {
	return tiers.Space{}, errors.ErrUnsupported
}

// Close does nothing.
func (bare) Close() error { return nil }

// Link simulates a GPU's memory behind its link to the host. It keeps no bytes. A transfer takes as
// long as its bytes would take on a link of the given bandwidth. There is one link per direction,
// which all transfers share in FIFO order. The cache manages the capacity.
type Link struct {
	bare
	clock     clock.Clock
	bandwidth float64
	links     [tiers.NumOps]link
	Free      bool // transfers take no time: for filling before the load, in virtual time only

	mu sync.Mutex
	// held has the existing objects: opening or removing a missing one is an error, as in any tier.
	held map[tiers.ID]struct{}
}

var _ tiers.Files = (*Link)(nil)

// NewLink returns an empty tier. Bandwidth is in bytes/s in each direction.
func NewLink(bandwidth float64, c clock.Clock) (*Link, error) {
	if !(bandwidth > 0) {
		return nil, fmt.Errorf("simulate a gpu with %g bytes/s: "+
			"the bandwidth must be positive (-gpu-bandwidth-gbps)", bandwidth)
	}
	return &Link{clock: c, bandwidth: bandwidth, held: make(map[tiers.ID]struct{})}, nil
}

// Traits returns traits of a tier without bytes, with one request per object: transfers pass the link
// one after the other.
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

// Submit completes the request when the bytes have passed the link. The time in the link's queue counts
// as service time.
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

// Commit makes the object visible.
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

// link is one direction: a queue of transfers, represented by the time at which it will be empty.
type link struct {
	mu   sync.Mutex
	free time.Duration
}

// reserve queues bytes that take the time passes, and returns when the last of them arrives.
func (l *link) reserve(now, passes time.Duration) (ended time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.free = max(l.free, now) + passes
	return l.free
}
