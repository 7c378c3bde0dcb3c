package filetier

import (
	"fmt"
	"math"

	"kvbench/tiers"
)

// pageSize is the alignment of every file where the filesystem needs less.
const pageSize = 4096

// policy is how a layout fills files. Everything else is the same for all layouts.
type policy struct {
	what   string // for warnings
	places int    // objects in a file
	slot   int64  // > 0: one preallocated file of places of this size that are used again
	// flush: Commit makes files durable. Without it direct I/O is what makes a write reach the
	// device.
	flush bool
	// exact: a file is as long as its object, without the padding of direct I/O, and its flush
	// covers all metadata.
	exact bool
	// preallocate: Create gives an object its blocks under direct I/O, so that a full disk shows
	// before the first byte and writes extend nothing.
	preallocate bool
}

// policyOf translates a layout.
//
//   - Files: a file each, flushed.
//   - Named: a file each, of exactly the object's size, flushed, for readers that look for files
//     by their names.
//   - Slots: one preallocated file of slots of one size, as engines do that offload fixed-size
//     blocks: nothing is created, flushed or unlinked per object. An object takes the lowest free
//     slot, so that objects written together lie together as far as free slots are adjacent.
//   - Packed: several objects in a file, in the order in which they were begun. A place is used
//     once: when its object goes, punching a hole frees its blocks, and the file goes with its last
//     object.
func policyOf(l tiers.Layout) (p policy, err error) {
	switch l.Kind {
	case tiers.LayoutFiles:
		p = policy{what: "files", places: 1, flush: true, preallocate: true}
	case tiers.LayoutNamed:
		p = policy{what: "named files", places: 1, flush: true, preallocate: true, exact: true}
	case tiers.LayoutSlots:
		if l.Bytes < 1 {
			err = fmt.Errorf("make slots of %d bytes: the size must be positive", l.Bytes)
		}
		p = policy{what: "slots", places: math.MaxInt32, slot: l.Bytes}
	case tiers.LayoutPacked:
		if l.Places < 2 {
			err = fmt.Errorf("make files of %d entries: there must be at least 2", l.Places)
		}
		p = policy{what: "packed files", places: l.Places, flush: true, preallocate: true}
	default:
		err = fmt.Errorf("make a storage tier: there is no layout %d", l.Kind)
	}
	return p, err
}

// describe is the layout's part of the tier's description, which results show.
func (p policy) describe() string {
	switch {
	case p.slot > 0:
		return fmt.Sprintf(", one file of slots of %d KiB", p.slot>>10)
	case p.places > 1:
		return fmt.Sprintf(", files of %d entries", p.places)
	}
	return ""
}
