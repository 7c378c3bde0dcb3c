package kvbench

import (
	"cmp"
	"context"
	"sync"

	"kvbench/tiers/cache"
	"kvbench/tiers/clock"
	"kvbench/tiers/transfer"
)

// Reference is a cache of the usual policy, a waterfall of least recent use with tiers of the same
// sizes, that is asked for the same entries in the same order as the run's own and moves no bytes:
// what it finds and the run's does not is what the run's policy costs, whatever the storage does.
// Nothing takes time in it, so that nobody waits for it: what a request is going to write is there
// at once.
//
// It is safe for concurrent use. The nil Reference is of a run that has the usual policy itself.
type Reference struct {
	cache *cache.Cache

	mu    sync.Mutex
	lease cache.Lease
}

// newReference is the one that a policy is compared with over some levels, nil for the usual one.
func newReference(p *Policy, of []cache.Level, clk clock.Clock) (*Reference, error) {
	if p.Place == cache.Exclusive && p.Promote == cache.Never && p.After == 0 && p.TTL == 0 &&
		!p.Pin && cmp.Or(p.Order, "lru") == "lru" {
		return nil, nil
	}
	var levels []cache.Level
	for _, l := range of {
		levels = append(levels, cache.Level{Kind: l.Kind, Capacity: l.Capacity, Keep: l.Keep})
	}
	c, err := cache.New(cache.Config{Levels: levels, Clock: clk,
		Transfer: &transfer.Transfer{Clock: clk}, Observer: nobody{}})
	return &Reference{cache: c}, err
}

// Decide asks for entries, writes those that are to be written and not there, and tells which were
// found. With prefix they are blocks, of which those behind a missing one do not count.
func (r *Reference) Decide(ctx context.Context, wants []cache.Want, prefix bool,
	found func(i int)) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lease.Prefix = prefix
	r.cache.Decide(&r.lease, wants)
	defer r.lease.Close(ctx, cache.Tag{})
	for i := range wants {
		switch {
		case r.lease.Outcome(i) == cache.Hit:
			found(i)
		case r.lease.Owned(i):
			_, _, _ = r.lease.Write(ctx, i, cache.Tag{}) // too large: it is not there
		}
	}
}

// Forget removes an entry, as the run has done.
func (r *Reference) Forget(ctx context.Context, key string) error {
	if r == nil {
		return nil
	}
	return r.cache.Forget(ctx, cache.Tag{}, key)
}
