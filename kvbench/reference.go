package kvbench

import (
	"cmp"
	"context"

	"kvbench/tiers/cache"
	"kvbench/tiers/clock"
)

// Reference is a cache with the usual policy: LRU, demotion through tiers of the run's sizes. It
// gets the run's requests in the same order and moves no bytes. Entries that it finds and the run's
// cache does not are the cost of the run's policy, independent of the storage.
//
// Nothing takes time in it, and entries in use do not keep others out, so no request waits. Blocks,
// whose capacity is reserved at the decision, are written with it; other entries are written when
// the run's cache writes them.
//
// It is safe for concurrent use. It is nil for a run with the usual policy.
type Reference struct{ cache *cache.Cache }

// newReference returns the reference of a policy over some levels, nil for the usual policy.
func newReference(p *Policy, of []cache.Level, clk clock.Clock) (*Reference, error) {
	if p.Place == cache.Exclusive && p.Promote == cache.Never && p.After == 0 &&
		cmp.Or(p.Order, "lru") == "lru" {
		return nil, nil
	}
	var levels []cache.Level
	for _, l := range of {
		levels = append(levels, cache.Level{Kind: l.Kind, Capacity: l.Capacity, Keep: l.Keep})
	}
	c, err := cache.New(cache.Config{Levels: levels, Clock: clk, Observer: noObserver{}})
	return &Reference{cache: c}, err
}

// Decide decides as the run's cache does and calls found for each entry that it has or that another
// request is to write. The lease keeps missing entries that it has to write until Write or Close.
func (r *Reference) Decide(l *cache.Lease, wants []cache.Want, prefix bool, found func(i int)) {
	if r == nil {
		return
	}
	l.Prefix = prefix
	r.cache.Decide(l, wants)
	for i := range wants {
		switch o := l.Outcome(i); {
		case l.Owned(i) && prefix:
			r.Write(l, i)
		case l.Owned(i):
		case o == cache.Hit || o == cache.Pending:
			found(i)
			l.Drop(context.Background(), i, cache.Tag{})
		}
	}
	if prefix {
		r.Close(l)
	}
}

// Write adds entry i of a decision, if the lease owns it. An entry that is larger than every tier is not added. The lease
// keeps no pin: the request may wait in the run's cache, and a pinned victim would keep its bytes from other requests.
func (r *Reference) Write(l *cache.Lease, i int) {
	if r != nil && l.Owned(i) {
		_, _, _ = l.Write(context.Background(), i, cache.Tag{})
		l.Drop(context.Background(), i, cache.Tag{})
	}
}

// Close ends a decision: what was not written will not be.
func (r *Reference) Close(l *cache.Lease) {
	if r != nil {
		l.Close(context.Background(), cache.Tag{})
	}
}

// Forget removes an entry, as the run has done.
func (r *Reference) Forget(ctx context.Context, key string) error {
	if r == nil {
		return nil
	}
	return r.cache.Forget(ctx, cache.Tag{}, key)
}
