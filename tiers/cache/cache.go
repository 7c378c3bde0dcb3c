package cache

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"kvbench/tiers"
	"kvbench/tiers/clock"
	"kvbench/tiers/transfer"
)

// Errors of the Cache that callers tell apart with errors.Is.
var (
	// ErrGone reports that an entry decided to be a hit was evicted, or its
	// writer failed, before it could be read.
	ErrGone = errors.New("the entry is gone")
	// ErrTooLarge reports an entry that no tier can ever hold.
	ErrTooLarge = errors.New("the entry is larger than the last tier")
)

// KeepRatio is the share of its capacity to which a tier that is not the last
// one is filled: what is above it is demoted (spec 6).
const KeepRatio = 0.80

// Level is one tier of a Cache.
type Level struct {
	Level    tiers.Kind
	Tier     tiers.Tier // nil: infinitely fast and without bytes, so that the cache keeps books alone
	Capacity int64      // bytes, > 0
}

// Config describes a Cache. Levels stand fastest first; the last one is
// the terminal tier.
type Config struct {
	Levels     []Level
	Transfer   *transfer.Transfer
	MaxWriters int // entries being written at a time; 0 = no bound
	Clock      clock.Clock
	Observer   Observer // nil: nobody watches; it may be a Beginner, too
}

// Cache is the one-way waterfall of spec 6: new entries go to the fastest tier
// that may hold them, least recently used entries sink to the next tier, the
// last tier deletes its least recently used ones, and reads never promote.
//
// # Locks and liveness
//
// One mutex guards all metadata; no lock is held across I/O. A writer takes its
// slot first, then reserves the whole path from the last tier upward in one
// step (see space), then moves bytes. Nobody holds a pin while waiting for a
// slot, for space or for another's write: a Lease lets go of its pins before
// and takes them again after. So every wait is for I/O in progress, or for a
// wait that began earlier, and no schedule can hang.
//
// All methods are safe for concurrent use; a Lease belongs to one goroutine.
type Cache struct {
	clock    clock.Clock
	now      func() time.Duration
	transfer *transfer.Transfer
	observer Observer
	beginner Beginner // nil: nobody asks

	mu       sync.Mutex
	slots    slots
	levels   []*space // fastest first
	index    map[string]*entry
	seq      uint64 // recency counter
	gen      uint64 // write generation counter
	open     int    // leases of DecideBlocks that are not closed
	crowded  bool   // one of them holds blocks that do not fit beside each other
	tickets  []*ticket
	counters Counters
}

// Counters counts what the cache did since it was made. Lookups are the
// business of whoever asks: only the plan knows which of them count.
type Counters struct {
	Evicted      int64                 // entries deleted from the last tier to make room
	EvictedBytes int64                 //
	Demoted      [tiers.NumKinds]int64 // entries that sank into the level
	DemotedBytes [tiers.NumKinds]int64
	Written      [tiers.NumKinds]int64 // entries written directly into the level
	WrittenBytes [tiers.NumKinds]int64
	Dropped      int64 // entries lost because their demotion failed or was cancelled
	DeleteErrors int64
}

// Gauge is the state of one tier at one moment.
type Gauge struct {
	Level    tiers.Kind
	Capacity int64
	Used     int64 // bytes of entries and reservations
	Peak     int64 // the largest Used since the counters were reset
	Bytes    int64 // of the entries alone, those being deleted included
	Entries  int64
}

// Tag travels with one operation so that the observer knows for whom it ran.
type Tag struct {
	Shard     int         // worker index
	Phase     tiers.Phase // Prefill or Decode; demotions report Evict
	Unbounded bool        // write without a slot: filling the cache before the window
}

// Observer is told what the cache does besides what its methods return. Its
// methods run on the goroutine that does the I/O, many at a time; they must not
// block and must not call the cache.
type Observer interface {
	// Chunk reports bytes that a tier has taken or given.
	Chunk(tag Tag, l tiers.Kind, op tiers.Op, phase tiers.Phase, bytes int64)
	// Demoted reports a finished demotion: a read of from and a write of to.
	Demoted(tag Tag, o tiers.Object, from, to tiers.Kind, read, write tiers.Timing)
	// Evicted reports an entry that left the cache to make room in the last
	// tier; its bytes are free when Deleted is called.
	Evicted(tag Tag, o tiers.Object, l tiers.Kind)
	// Deleted reports that the bytes of an object are free again.
	Deleted(tag Tag, o tiers.Object, l tiers.Kind, took time.Duration)
	// Failed reports an operation that failed for good, Retried one that is tried again.
	Failed(tag Tag, o tiers.Object, l tiers.Kind, op tiers.Op, err error)
	Retried(tag Tag, o tiers.Object, l tiers.Kind, op tiers.Op, err error)
}

// Beginner is an Observer that also wants to know when an operation begins to
// move bytes, after all waiting: what an I/O trace is made of. A demotion is two
// operations of phase Evict.
type Beginner interface {
	Began(tag Tag, o tiers.Object, l tiers.Kind, op tiers.Op, phase tiers.Phase)
}

// New makes an empty cache over tiers that the caller made and closes.
func New(cfg Config) (*Cache, error) {
	if len(cfg.Levels) == 0 {
		return nil, errors.New("a cache needs at least one tier: give -cpu-mem-gb, -gpu-mem-gb or -cache-dir")
	}
	if cfg.Transfer == nil || cfg.Clock == nil {
		return nil, errors.New("a cache needs a transfer and a clock")
	}
	c := &Cache{clock: cfg.Clock, now: cfg.Clock.Now, transfer: cfg.Transfer, observer: cfg.Observer, index: make(map[string]*entry)}
	if c.observer == nil {
		c.observer = nobody{}
	}
	c.beginner, _ = c.observer.(Beginner)
	c.slots = slots{free: cfg.MaxWriters, bounded: cfg.MaxWriters > 0}
	for i, l := range cfg.Levels {
		if l.Capacity <= 0 {
			return nil, fmt.Errorf("tier %s: capacity %d must be positive", l.Level, l.Capacity)
		}
		if i > 0 && l.Level <= cfg.Levels[i-1].Level {
			return nil, fmt.Errorf("tier %s stands below %s: tiers go fastest first", l.Level, cfg.Levels[i-1].Level)
		}
		s := &space{level: l.Level, tier: l.Tier, capacity: l.Capacity, limit: l.Capacity}
		if c.beginner == nil && l.Tier != nil { // a Beginner is told of every entry before it moves, one by one
			s.extent = l.Tier.Traits().Extent
		}
		if i < len(cfg.Levels)-1 {
			s.limit = int64(float64(l.Capacity) * KeepRatio)
		}
		c.levels = append(c.levels, s)
	}
	return c, nil
}

// Fits returns nil when an entry of that size can be held, else ErrTooLarge
// with the numbers.
func (c *Cache) Fits(size int64) error {
	last := c.levels[len(c.levels)-1]
	if size > last.capacity {
		return fmt.Errorf("%w: %d bytes into the %s tier of %d bytes", ErrTooLarge, size, last.level, last.capacity)
	}
	return nil
}

// Gauges appends the state of each tier to dst, fastest first.
func (c *Cache) Gauges(dst []Gauge) []Gauge {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.levels {
		dst = append(dst, Gauge{s.level, s.capacity, s.used, s.peak, s.used - s.reserved, s.entries})
	}
	return dst
}

// Counters returns what happened since the cache was made or ResetCounters.
func (c *Cache) Counters() Counters {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.counters
}

// ResetCounters forgets the counters, not the entries: the end of
// preconditioning, pre-population or warm-up.
func (c *Cache) ResetCounters() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counters = Counters{}
	for _, s := range c.levels {
		s.peak = s.used
	}
	for _, e := range c.index {
		e.seen = false
	}
}

// Forget deletes one entry that nobody uses and counts it as no eviction. An
// absent one is fine.
func (c *Cache) Forget(ctx context.Context, tag Tag, key string) error {
	c.mu.Lock()
	e := c.index[key]
	if e == nil {
		c.mu.Unlock()
		return nil
	}
	if e.busy() || e.cur.pins > 0 {
		c.mu.Unlock()
		return fmt.Errorf("deleting %s from the cache: it is in use (%s)", key, e.state)
	}
	r := c.evict(e)
	c.mu.Unlock()
	return c.remove(ctx, tag, r)
}

// Clear deletes every entry. It is for the time between trials: the caller
// makes sure that no lease is open.
func (c *Cache) Clear(ctx context.Context) error {
	c.mu.Lock()
	var all []*replica
	for _, e := range c.index {
		if e.state != resident {
			c.mu.Unlock()
			return fmt.Errorf("clearing the cache: %s is still %s", e.key, e.state)
		}
		all = append(all, c.evict(e))
	}
	c.mu.Unlock()
	var errs []error
	for _, r := range all {
		if r != nil {
			errs = append(errs, c.remove(ctx, Tag{}, r))
		}
	}
	return errors.Join(errs...)
}

type nobody struct{}

func (nobody) Chunk(Tag, tiers.Kind, tiers.Op, tiers.Phase, int64)                           {}
func (nobody) Demoted(Tag, tiers.Object, tiers.Kind, tiers.Kind, tiers.Timing, tiers.Timing) {}
func (nobody) Evicted(Tag, tiers.Object, tiers.Kind)                                         {}
func (nobody) Deleted(Tag, tiers.Object, tiers.Kind, time.Duration)                          {}
func (nobody) Failed(Tag, tiers.Object, tiers.Kind, tiers.Op, error)                         {}
func (nobody) Retried(Tag, tiers.Object, tiers.Kind, tiers.Op, error)                        {}

var _ Observer = nobody{}
