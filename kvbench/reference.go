package kvbench

import (
	"cmp"
	"context"

	"kvbench/tiers/cache"
	"kvbench/tiers/clock"
)

// Reference is a cache with the default policy: LRU and demotion through tiers of the run's sizes. It
// gets the run's requests in the same order and moves no bytes. The difference of its hits and the hits
// of the run's cache is the cost of the run's policy. This cost does not depend on the speed of the
// storage.
//
// Its operations take no time, and it keeps no entry pinned, so no request waits. It writes blocks at
// the decision. It writes other entries when the run's cache writes them.
//
// Reference is safe for concurrent use. It is nil for a run with the default policy.
type Reference struct{ cache *cache.Cache }

// newReference returns a reference with levels of the same capacities. It returns nil if p is the
// default policy.
func newReference(p *Policy, of []cache.Level, clk clock.Clock) *Reference {
	if p.Place == cache.Exclusive && p.Promote == cache.Never && p.After == 0 &&
		cmp.Or(p.Order, "lru") == "lru" {
		return nil
	}
	var levels []cache.Level
	for _, l := range of {
		levels = append(levels, cache.Level{Kind: l.Kind, Capacity: l.Capacity})
	}
	return &Reference{cache.New(cache.Config{Levels: levels, Clock: clk, Observer: cache.NoObserver{},
		Policy: cache.Policy{Keep: p.Keep, Largest: p.Largest}})}
}

// Decide decides about the wants of a request, as cache.Decide does. It calls found for each entry that
// it has or that another request will write. The lease owns missing entries until Write or Close.
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

// Write adds entry i of a decision, if the lease owns it. It does not add an entry that is larger than
// every tier. It unpins the entry at once: the request may wait in the run's cache, and a pinned entry
// would take capacity from other requests.
func (r *Reference) Write(l *cache.Lease, i int) {
	if r != nil && l.Owned(i) {
		_, _, _ = l.Write(context.Background(), i, cache.Tag{})
		l.Drop(context.Background(), i, cache.Tag{})
	}
}

// Close ends a decision. Entries that the lease still owns are not written.
func (r *Reference) Close(l *cache.Lease) {
	if r != nil {
		l.Close(context.Background(), cache.Tag{})
	}
}

// Forget removes an entry that the run has removed.
func (r *Reference) Forget(ctx context.Context, key string) error {
	if r == nil {
		return nil
	}
	return r.cache.Forget(ctx, cache.Tag{}, key)
}
