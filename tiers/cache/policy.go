package cache

import (
	"errors"
	"fmt"

	"kvbench/tiers/evict"
)

// Policy says where entries live and which have to leave. Its zero value is that of the
// specification: an exclusive waterfall with least recently used victims, in which reads
// promote nothing.
type Policy struct {
	Place   Placement
	Promote Promotion
	// After is how many requests must have asked for an entry before it may go to the last level:
	// with Selective those at which it is copied there, at least 2, and else a condition for its
	// demotion, without which it is evicted. 0 = none.
	After int
	// Behind is how many bytes of copies to the last level may wait to be written, or be written,
	// behind the requests; what is beyond is not written. 0: the request that writes an entry
	// copies it, and waits for that.
	Behind int64
	// Admit says whether an entry may live in a level that is not the last one; nil: wherever
	// it fits. It is asked under the cache's lock.
	Admit func(e *Entry, level int) bool
	// Evict makes the order of one level; nil: evict.NewLRU.
	Evict func(capacity int64) evict.Order
}

// Placement says in how many levels an entry lives.
type Placement uint8

// The placements. New entries go to the fastest level that may hold them. Levels above the last one
// are a waterfall in all of them: what has to leave one moves to the next.
const (
	// Exclusive: an entry is in one level, and what leaves the level above the last moves there.
	Exclusive Placement = iota
	// WriteThrough: an entry is copied to the last level when it is written. What leaves the level
	// above it is dropped, also where it has no copy, as one that was not written for want of room.
	WriteThrough
	// WriteBack: what leaves the level above the last is copied there, unless its copy is there
	// still: promotion leaves it.
	WriteBack
	// Selective: an entry is copied to the last level when so many requests have asked for it. What
	// leaves the level above without a copy is gone.
	Selective
)

// Placements are their names, in their order.
var Placements = []string{"waterfall", "write-through", "write-back", "selective"}

// Promotion says whether a read moves an entry up.
type Promotion uint8

// Never: it stays where it was found. OnHit: what a request finds in the last level goes to the
// fastest level that may hold it, too. Not with Exclusive: an entry that moved up would wait for
// those that move down in its place, and these for its own.
const (
	Never Promotion = iota
	OnHit
)

// copiesAtWrite says whether it has one from the beginning.
func (p *Policy) copiesAtWrite() bool { return p.Place == WriteThrough }

// validate says what cannot be.
func (p *Policy) validate(levels int) error {
	switch {
	case p.Place > Selective || p.Promote > OnHit:
		return fmt.Errorf("a cache with placement %d and promotion %d: %w", p.Place, p.Promote,
			errors.ErrUnsupported)
	case p.Place == Exclusive && p.Promote != Never:
		return errors.New("a waterfall promotes nothing: its entries live in one level")
	case p.Place == Selective && p.After < 2:
		return fmt.Errorf("a selective cache that copies at %d uses: at least 2", p.After)
	case p.Place == WriteThrough && p.After > 1:
		return errors.New("a cache that writes through admits everything")
	case p.Behind > 0 && p.Place != WriteThrough && p.Place != Selective:
		return errors.New("only copies can be written behind")
	case levels == 1 && (p.Place != Exclusive || p.Promote != Never || p.After > 1):
		return errors.New("a cache of one level has nothing to copy, promote or admit")
	}
	return nil
}
