package cache

import (
	"errors"
	"fmt"

	"kvbench/tiers/evict"
)

// Policy says which levels hold an entry and which entries are victims. Its zero value is the policy
// of the specification: an exclusive waterfall with LRU eviction, without promotion.
type Policy struct {
	Place   Placement
	Promote Promotion
	// After is how many requests must have wanted an entry before it may go to the last level. With
	// Selective the entry is copied at that request, and After is at least 2. Otherwise the entry is
	// demoted only then, and evicted before. 0 = no condition.
	After int
	// Behind is how many bytes of copies to the last level may wait or be written behind the
	// requests. Copies beyond it are dropped. 0: the request that writes an entry also writes the
	// copy, and waits for it.
	Behind int64
	// Admit reports whether a level above the last may hold an entry; nil: if it fits. It is called
	// under the cache's lock.
	Admit func(e *Entry, level int) bool
	// Evict returns the order of eviction of one level; nil: evict.NewLRU.
	Evict func(capacity int64) evict.Order
}

// Placement says how many levels hold an entry.
type Placement uint8

// The placements. New entries go to the fastest level that may hold them. In all placements the
// levels above the last one are a waterfall: the victims of one level are demoted to the next.
const (
	// Exclusive: one level holds an entry. Victims of the level above the last are demoted to it.
	Exclusive Placement = iota
	// WriteThrough: an entry is copied to the last level when it is written. Victims of the level
	// above are dropped, also if they have no copy because the write-behind queue was full.
	WriteThrough
	// WriteBack: victims of the level above the last are copied to it, unless it still has their
	// copy: promotion keeps the replica in the last level.
	WriteBack
	// Selective: an entry is copied to the last level when After requests have wanted it. Victims of
	// the level above that have no copy are evicted.
	Selective
)

// Placements are the names of the placements.
var Placements = []string{"waterfall", "write-through", "write-back", "selective"}

// Promotion says whether a read moves an entry up.
type Promotion uint8

// Never: an entry stays in its level. OnHit: an entry that a request finds in the last level is also
// copied to the fastest level that may hold it. OnHit does not work with Exclusive: a promotion would
// wait for the demotions that it causes, and these for the bytes of the promoted entry.
const (
	Never Promotion = iota
	OnHit
)

// copiesAtWrite reports whether an entry is copied when it is written.
func (p *Policy) copiesAtWrite() bool { return p.Place == WriteThrough }

// validate returns an error for a policy that is not possible.
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
