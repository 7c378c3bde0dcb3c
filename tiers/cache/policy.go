package cache

import "kvbench/tiers/evict"

// KeepRatio is the default of Policy.Keep.
const KeepRatio = 0.80

// Policy says which levels hold an entry and which entries are victims. The zero value is an
// exclusive waterfall with LRU eviction, without promotion.
type Policy struct {
	// Keep is the share of its capacity to which a level above the last is filled, 0 = KeepRatio.
	// Beyond it entries are demoted.
	Keep float64
	// Largest is the size of the largest entry that may enter a level above the last, as a share of
	// its capacity, 0 = Keep. An entry above Keep is alone in the level.
	Largest float64
	Place   Placement
	Promote Promotion
	// After is the number of requests for an entry from which on it may go to the last level. With
	// Selective the entry is copied at that request, and After is at least 2. Otherwise a victim with
	// fewer requests is evicted instead of demoted. 0 = no condition.
	After int
	// Behind is the largest number of bytes of copies in the write-behind queue. Copies beyond it are
	// dropped. 0: the request that writes an entry also writes the copy, and waits for it.
	Behind int64
	// Evict returns the eviction order of a level; nil = evict.NewLRU.
	Evict func(capacity int64) evict.Order
}

// Placement says how many levels hold an entry.
type Placement uint8

// The placements. New entries go to the fastest level that may hold them. In all placements the
// levels above the last one are a waterfall: the victims of one level are demoted to the next.
const (
	// Exclusive: one level holds an entry. Victims of the level above the last are demoted to it.
	Exclusive Placement = iota
	// WriteThrough: an entry is copied to the last level when it is written. Victims of the levels
	// above are dropped, also without a copy (the write-behind queue was full).
	WriteThrough
	// WriteBack: victims of the level above the last are copied to it, unless it still has a copy from
	// before their promotion.
	WriteBack
	// Selective: an entry is copied to the last level when After requests have wanted it. Victims of
	// the level above that have no copy are evicted.
	Selective
)

// Placements are the names of the placements.
var Placements = []string{"waterfall", "write-through", "write-back", "selective"}

// Promotion says whether a read moves an entry up.
type Promotion uint8

// Never: an entry stays in its level. OnHit: a hit in the last level also copies the entry to the
// fastest level that may hold it. OnHit does not work with Exclusive: the promotion would wait for
// demotions that wait for the bytes of the promoted entry.
const (
	Never Promotion = iota
	OnHit
)
