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
)

// Errors of the Cache, to match with errors.Is.
var (
	// ErrGone reports that an entry decided to be a hit was evicted, or its writer failed,
	// before it could be read.
	ErrGone = errors.New("the entry is gone")
	// ErrTooLarge reports an entry that is larger than the last tier.
	ErrTooLarge = errors.New("the entry is larger than the last tier")
)

// Level is one level of a cache: a tier and the capacity that is used of it.
type Level struct {
	Kind     tiers.Kind
	Tier     tiers.Tier // nil: stores no bytes, and all operations complete at once
	Capacity int64      // bytes, > 0
}

// Files returns the files of the level's tier, nil if it has none.
func (l Level) Files() tiers.Files {
	if l.Tier == nil {
		return nil
	}
	return tiers.FilesOf(l.Tier)
}

// Description describes the level for people.
func (l Level) Description() string {
	if l.Tier == nil {
		return "null: no bytes, no time"
	}
	return l.Tier.Traits().Description
}

// Move reads objects of the level's tier into dst, or writes objects from a new source: see tiers.Tier. In
// a level without a tier it moves the first object in no time.
func (l Level) Move(ctx context.Context, now func() time.Duration, op tiers.Op, c *tiers.Call,
	objs []tiers.Object, source func() tiers.Source, dst tiers.Sink) error {
	switch {
	case l.Tier == nil:
		at := now()
		c.Timing, c.Done = tiers.Timing{}, 1
		c.Observe(tiers.Chunk{Op: op, Bytes: objs[0].Size, Begun: at, Ended: at, Submitted: at, Completed: at})
		return nil
	case op == tiers.Read:
		return l.Tier.Get(ctx, c, objs, dst)
	}
	return l.Tier.Put(ctx, c, objs, source())
}

// Config describes a Cache.
type Config struct {
	Levels []Level // fastest first, at least one
	Policy Policy
	// Source returns the source of the bytes of one write. Sink gets the bytes that are read. Levels
	// without a tier use neither.
	Source     func() tiers.Source
	Sink       tiers.Sink
	Tails      tiers.Tails // how many bytes of each block of a prefix are read
	MaxWriters int         // entries that are written at a time; 0 = no limit
	Clock      clock.Clock
	Observer   Observer
}

// Cache is a stack of levels and the index of their entries. All methods are safe for concurrent use;
// a Lease belongs to one goroutine.
type Cache struct {
	clock    clock.Clock
	source   func() tiers.Source
	sink     tiers.Sink
	observer Observer
	policy   Policy
	tails    tiers.Tails
	bounded  bool // there is a write limit

	mu             sync.Mutex
	levels         []*level // fastest first
	index          map[string]*Entry
	uses           uint64 // number of uses, for recency
	gen            uint64 // number of writes, for generations
	open           int    // leases with Prefix that are not closed
	oversubscribed bool   // one lease is open, and its blocks do not all fit at once
	places         int    // how many more writers the write limit admits now
	writers        queue  // waits for the write limit
	planning       queue  // waits for capacity that cannot be planned yet

	moves    Moves
	backlog  backlog
	search   search
	lacking  tiers.Kind             // see Lacking
	consider func(*evict.Item) bool // the method choose, bound once to save allocations
}

// Gauge is the state of one level at one moment.
type Gauge struct {
	Level    tiers.Kind
	Capacity int64
	Used     int64 // bytes of entries and reservations
	Peak     int64 // the largest Used since ResetGauges
	Bytes    int64 // of entries, including entries that are being deleted
	// Leaving is the part of Bytes that is being deleted or demoted. Claimed is the capacity claimed by
	// writes in progress, including claims whose bytes are not free yet. Bytes - Leaving + Claimed <=
	// Capacity.
	Leaving, Claimed int64
	Entries          int64
}

// Moves counts the copies, promotions and removals that the cache made in addition to the requests' own
// reads and writes, since ResetGauges.
type Moves struct {
	Copied    Count // to the last level, from a level above
	Promoted  Count // from the last level to a level above
	Dropped   Count // removed from one level, while another level keeps the entry
	Refused   Count // evicted above the last level, because the last level did not admit them
	Unwritten Count // copies that were not made: the write-behind queue was full, or the write failed
	// MostBehind is the largest number of bytes in the write-behind queue, including bytes being
	// written.
	MostBehind int64
}

// Count is a number of entries and their bytes.
type Count struct{ Entries, Bytes int64 }

func (n *Count) add(bytes int64) {
	n.Entries++
	n.Bytes += bytes
}

// Moves returns the counts since ResetGauges.
func (c *Cache) Moves() Moves {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.moves
}

// copyJob is a copy in the write-behind queue.
type copyJob struct {
	tag Tag
	e   *Entry
	o   tiers.Object
}

// backlog is the write-behind queue. Guarded by the cache's lock.
type backlog struct {
	ctx     context.Context // ends with Close
	end     context.CancelFunc
	bytes   int64 // waiting and being written
	jobs    []copyJob
	writers int         // goroutines that write copies
	idle    clock.Event // Close waits here for the writers
}

// Tag shows the observer for whom an operation runs.
type Tag struct {
	Shard     int         // worker index
	Phase     tiers.Phase // Prefill or Decode; demotions report Evict
	Unbounded bool        // a write without the write limit, to fill the cache before the window
}

// Observer receives the events of the cache that its methods do not return. Its methods run
// concurrently, on the goroutines that do the I/O. They must not block and must not call the cache.
type Observer interface {
	// Began reports that bytes of an object begin to move, after all waits. The I/O trace records these
	// events. A demotion reports a read and a write of phase Evict. A transfer of several objects
	// reports the first.
	Began(tag Tag, o tiers.Object, l tiers.Kind, op tiers.Op, phase tiers.Phase)
	// Chunk reports a completed request, or the flush of a write.
	Chunk(tag Tag, l tiers.Kind, phase tiers.Phase, c tiers.Chunk)
	// Demoted reports a completed demotion: a read of from and a write of to.
	Demoted(tag Tag, o tiers.Object, from, to tiers.Kind, read, write tiers.Timing)
	// Copied reports a completed copy or promotion.
	Copied(tag Tag, o tiers.Object, from, to tiers.Kind, write tiers.Timing)
	// Evicted reports an entry that left the cache to free capacity of its level. Its bytes are free
	// when Deleted is called.
	Evicted(tag Tag, o tiers.Object, l tiers.Kind)
	// Deleted reports that the bytes of an object are free.
	Deleted(tag Tag, o tiers.Object, l tiers.Kind, took time.Duration)
	// Failed reports a read, write or delete that failed after all retries, Retried an operation that is
	// tried again.
	Failed(tag Tag, o tiers.Object, l tiers.Kind, what string, err error)
	Retried(tag Tag)
}

// NoObserver ignores all events. An Observer that embeds it has only the methods that it needs.
type NoObserver struct{}

// The methods of NoObserver.
func (NoObserver) Began(Tag, tiers.Object, tiers.Kind, tiers.Op, tiers.Phase)        {}
func (NoObserver) Chunk(Tag, tiers.Kind, tiers.Phase, tiers.Chunk)                   {}
func (NoObserver) Copied(Tag, tiers.Object, tiers.Kind, tiers.Kind, tiers.Timing)    {}
func (NoObserver) Evicted(Tag, tiers.Object, tiers.Kind)                             {}
func (NoObserver) Deleted(Tag, tiers.Object, tiers.Kind, time.Duration)              {}
func (NoObserver) Failed(Tag, tiers.Object, tiers.Kind, string, error)               {}
func (NoObserver) Retried(Tag)                                                       {}
func (NoObserver) Demoted(_ Tag, _ tiers.Object, _, _ tiers.Kind, _, _ tiers.Timing) {}

// New returns an empty cache. The caller owns the tiers and closes them.
func New(cfg Config) *Cache {
	c := &Cache{
		clock: cfg.Clock, source: cfg.Source, sink: cfg.Sink, observer: cfg.Observer,
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
		c.levels = append(c.levels, c.newLevel(i, l, i == len(cfg.Levels)-1))
	}
	return c
}

// fits returns ErrTooLarge, with the numbers, if no level can hold an entry of that size.
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

// ResetGauges resets the peaks, the moves and the marks of entries that were read, at the end of
// preconditioning, pre-population or warm-up. It keeps the entries.
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
