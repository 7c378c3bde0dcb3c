package cache

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"kvbench/tiers"
	"kvbench/tiers/clock"
	"kvbench/tiers/evict"
	"kvbench/tiers/transfer"
)

// Errors of the Cache that callers tell apart with errors.Is.
var (
	// ErrGone reports that an entry decided to be a hit was evicted, or its writer failed,
	// before it could be read.
	ErrGone = errors.New("the entry is gone")
	// ErrTooLarge reports an entry that no tier can ever hold.
	ErrTooLarge = errors.New("the entry is larger than the last tier")
)

// KeepRatio is the share of its capacity to which a level that is not the last one is filled:
// what is above it is demoted.
const KeepRatio = 0.80

// Level is a place in a cache's stack: a tier and how much of it is used.
type Level struct {
	Kind     tiers.Kind
	Tier     tiers.Tier // nil: keeps nothing and takes no time, all is over at once
	Capacity int64      // bytes, > 0
	// Keep is the share of the capacity that is filled. 0: KeepRatio, in the last level all.
	Keep float64
}

// Description tells people what the level is.
func (l Level) Description() string {
	if l.Tier == nil {
		return "null: no bytes, no time"
	}
	return l.Tier.Traits().Description
}

// Config describes a Cache. Levels stand fastest first; the last one is the terminal level.
type Config struct {
	Levels     []Level
	Policy     Policy
	Transfer   *transfer.Transfer
	Tails      tiers.Tails // what is read of the blocks of a prefix
	MaxWriters int         // entries being written at a time; 0 = no bound
	Clock      clock.Clock
	Observer   Observer
}

// Cache is a stack of levels and the index of what lives in them. All methods are safe for
// concurrent use; a Lease belongs to one goroutine.
type Cache struct {
	clock    clock.Clock
	transfer *transfer.Transfer
	observer Observer
	policy   Policy
	tails    tiers.Tails
	bounded  bool // there is a write limit

	mu             sync.Mutex
	levels         []*level // fastest first
	index          map[string]*Entry
	uses           uint64 // counts them, for recency
	gen            uint64 // counts writes, for generations
	open           int    // leases with Prefix that are not closed
	oversubscribed bool   // there is one, and its blocks do not fit beside each other
	places         int    // of the write limit that are free
	writers        queue  // who waits for one
	planning       queue  // who waits until room can be planned

	moves    Moves
	backlog  backlog
	search   search
	consider func(*evict.Item) bool // choose, bound once: plans are many
}

// Gauge is the state of one level at one moment.
type Gauge struct {
	Level    tiers.Kind
	Capacity int64
	Used     int64 // bytes of entries and reservations
	Peak     int64 // the largest Used since ResetGauges
	Bytes    int64 // of the entries alone, those being deleted included
	// Leaving is the part of Bytes that is being deleted or demoted; Claimed is room of writes
	// under way, whether or not their bytes are free yet: Bytes - Leaving + Claimed <= Capacity.
	Leaving, Claimed int64
	Entries          int64
}

// Moves counts what the cache did beyond the requests' own reads and writes, since ResetGauges.
type Moves struct {
	Copied    Count // to the last level, from above
	Promoted  Count // from the last level, upward
	Dropped   Count // from one level, because they lived on in another
	Refused   Count // evicted from above the last level, which did not take them
	Unwritten Count // copies that were not made: no room to wait behind the requests, or a failure
	// MostBehind is the most bytes that waited, or were being written, behind the requests.
	MostBehind int64
}

// Count is entries and their bytes.
type Count struct{ Entries, Bytes int64 }

func (n *Count) add(bytes int64) {
	n.Entries++
	n.Bytes += bytes
}

// Moves returns the counts up to now.
func (c *Cache) Moves() Moves {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.moves
}

// copyJob is a copy that waits to be written.
type copyJob struct {
	tag Tag
	e   *Entry
	o   tiers.Object
}

// backlog is the copies that wait behind the requests, and who writes them. Guarded by the cache's
// lock.
type backlog struct {
	ctx     context.Context // ends with Close
	end     context.CancelFunc
	bytes   int64 // waiting and being written
	jobs    []copyJob
	writers int
	idle    *waiter // of Close
}

// Tag travels with one operation so that the observer knows for whom it ran.
type Tag struct {
	Shard     int         // worker index
	Phase     tiers.Phase // Prefill or Decode; demotions report Evict
	Unbounded bool        // write without the write limit: filling the cache before the window
}

// Observer is told what the cache does besides what its methods return. Its methods run on the
// goroutine that does the I/O, many at a time; they must not block and must not call the cache.
type Observer interface {
	// Began says that bytes of an object begin to move, after all waiting: what an I/O trace is
	// made of. A demotion is two operations of phase Evict; of a transfer of several objects it
	// names the first.
	Began(tag Tag, o tiers.Object, l tiers.Kind, op tiers.Op, phase tiers.Phase)
	// Chunk reports a request that a tier has answered, or the flush of a write.
	Chunk(tag Tag, l tiers.Kind, phase tiers.Phase, c tiers.Chunk)
	// Demoted reports a finished demotion: a read of from and a write of to.
	Demoted(tag Tag, o tiers.Object, from, to tiers.Kind, read, write tiers.Timing)
	// Copied reports a finished copy of an entry that stays where it was too, or a promotion.
	Copied(tag Tag, o tiers.Object, from, to tiers.Kind, write tiers.Timing)
	// Evicted reports an entry that left the cache, to make room in the level that it was in; its
	// bytes are free when Deleted is called.
	Evicted(tag Tag, o tiers.Object, l tiers.Kind)
	// Deleted reports that the bytes of an object are free again.
	Deleted(tag Tag, o tiers.Object, l tiers.Kind, took time.Duration)
	// Failed reports a read, write or delete that failed for good, Retried an operation that is
	// tried again.
	Failed(tag Tag, o tiers.Object, l tiers.Kind, what string, err error)
	Retried(tag Tag, o tiers.Object, l tiers.Kind, op tiers.Op, err error)
}

// New makes an empty cache over tiers that the caller made and closes.
func New(cfg Config) (*Cache, error) {
	switch {
	case len(cfg.Levels) == 0:
		return nil, errors.New("a cache needs at least one tier: " +
			"give -cpu-mem-gb, -gpu-mem-gb or -cache-dir")
	case cfg.Transfer == nil || cfg.Clock == nil:
		return nil, errors.New("a cache needs a transfer and a clock")
	}
	if err := cfg.Policy.validate(len(cfg.Levels)); err != nil {
		return nil, err
	}
	c := &Cache{
		clock: cfg.Clock, transfer: cfg.Transfer, observer: cfg.Observer,
		policy:  cfg.Policy,
		tails:   cfg.Tails,
		bounded: cfg.MaxWriters > 0, places: cfg.MaxWriters,
		index: make(map[string]*Entry), search: search{need: make([]int64, len(cfg.Levels)+1)},
	}
	c.consider = c.choose
	c.backlog.ctx, c.backlog.end = context.WithCancel(context.Background())
	if c.policy.Evict == nil {
		c.policy.Evict = evict.NewLRU
	}
	for i, l := range cfg.Levels {
		if l.Capacity <= 0 {
			return nil, fmt.Errorf("tier %s: capacity %d must be positive", l.Kind, l.Capacity)
		}
		if i > 0 && l.Kind <= cfg.Levels[i-1].Kind {
			return nil, fmt.Errorf("tier %s stands below %s: tiers go fastest first", l.Kind,
				cfg.Levels[i-1].Kind)
		}
		c.levels = append(c.levels, c.newLevel(i, l, i == len(cfg.Levels)-1))
	}
	return c, nil
}

// fits returns nil when an entry of that size can be held, else ErrTooLarge with the numbers.
func (c *Cache) fits(size int64) error {
	if last := c.last(); size > last.limit {
		return fmt.Errorf("%w: %d bytes into the %s tier of %d bytes",
			ErrTooLarge, size, last.Kind, last.limit)
	}
	return nil
}

// Gauges appends the state of each level to dst, fastest first.
func (c *Cache) Gauges(dst []Gauge) []Gauge {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, l := range c.levels {
		dst = append(dst, Gauge{Level: l.Kind, Capacity: l.Capacity, Used: l.used, Peak: l.peak,
			Bytes: l.used - l.reserved, Leaving: l.leaving, Claimed: l.reserved + l.claimed,
			Entries: l.entries})
	}
	return dst
}

// ResetGauges forgets the peaks, the moves, and what was read before, but no entries: the end of
// preconditioning, pre-population or warm-up.
func (c *Cache) ResetGauges() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, l := range c.levels {
		l.peak = l.used
	}
	for _, e := range c.index {
		e.seen = false
	}
	c.moves = Moves{MostBehind: c.backlog.bytes}
}
