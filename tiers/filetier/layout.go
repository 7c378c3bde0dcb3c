package filetier

import (
	"fmt"
	"math"

	"kvbench/tiers"
)

// pageSize is what every file is aligned to where the filesystem asks for less.
const pageSize = 4096

// policy is how a layout fills files. Everything else is the same for all of them.
type policy struct {
	what   string // for warnings
	places int    // objects in a file
	// grouped: each run of objects gets a file of its own, which ends where the place in the
	// request is a multiple of places; else objects go into one open file, wherever they come from,
	// until it is full.
	grouped bool
	slot    int64 // > 0: one file, made before, of places of this size that are used again
	part    int64 // > 0: an object in several files of this size, the last one shorter
	recycle bool  // the file of an object that is gone is another one's, see shell
	// flush: Commit makes files durable. Without it direct I/O is what makes a write reach the
	// device.
	flush bool
	// exact: a file is as long as its object, without the padding of direct I/O, and the flush is
	// one of all its metadata.
	exact bool
	// preallocate: Create gives an object its blocks under direct I/O, so that a full disk shows
	// before the first byte and writes extend nothing.
	preallocate bool
}

// policyOf translates a layout.
//
//   - Files: a file each, flushed. With Recycle the file of an object that is gone is overwritten
//     by the next one.
//   - Named: likewise, of exactly the object's size, for those who look for files by their names.
//   - Slots: one preallocated file of slots of one size, as engines do that offload fixed-size
//     blocks: nothing is created, flushed or unlinked per object. An object takes the lowest free
//     slot, so that objects written together lie together as far as there are free slots side by
//     side.
//   - Packed: several objects in a file, in the order in which they were begun. A place is used
//     once: when its object goes, its blocks are given back by punching a hole, and the file goes
//     with its last object.
//   - Grouped: likewise, those of one stretch of a request: LMCache's chunks, where a chunk has
//     several blocks.
//   - Chunks: several files for an object, as LMCache's disk backend keeps blocks larger than its
//     chunks: created, written and closed, without preallocation and without a flush. Nothing lies
//     side by side.
func policyOf(l tiers.Layout) (p policy, err error) {
	switch l.Kind {
	case tiers.LayoutFiles:
		p = policy{what: "files", places: 1, flush: true, preallocate: true, recycle: l.Recycle}
	case tiers.LayoutNamed:
		p = policy{what: "named files", places: 1, flush: true, preallocate: true, exact: true}
	case tiers.LayoutSlots:
		p = policy{what: "slots", places: math.MaxInt32, slot: l.Bytes}
	case tiers.LayoutPacked:
		p = policy{what: "packed files", places: l.Places, flush: true, preallocate: true}
	case tiers.LayoutGrouped:
		p = policy{what: "files of several entries", places: l.Places, grouped: true}
	case tiers.LayoutChunks:
		p = policy{what: "chunk files", places: 1, part: l.Bytes}
	default:
		return p, fmt.Errorf("make a storage tier: there is no layout %d", l.Kind)
	}
	if l.Recycle && l.Kind != tiers.LayoutFiles {
		return p, fmt.Errorf("make %s: only files of one entry can be overwritten as a whole",
			p.what)
	}
	switch l.Kind {
	case tiers.LayoutSlots, tiers.LayoutChunks:
		if l.Bytes < 1 {
			err = fmt.Errorf("make %s of %d bytes: the size must be positive", p.what, l.Bytes)
		}
	case tiers.LayoutPacked, tiers.LayoutGrouped:
		if l.Places < 2 {
			err = fmt.Errorf("make files of %d entries: there must be at least 2", l.Places)
		}
	}
	return p, err
}

// describe is the layout's part of the tier's description, which results show.
func (p policy) describe() string {
	switch {
	case p.recycle:
		return ", files overwritten in place"
	case p.slot > 0:
		return fmt.Sprintf(", one file of slots of %d KiB", p.slot>>10)
	case p.part > 0:
		return fmt.Sprintf(", files of %d KiB without a flush", p.part>>10)
	case p.grouped:
		return fmt.Sprintf(", files of %d entries without a flush", p.places)
	case p.places > 1:
		return fmt.Sprintf(", files of %d entries", p.places)
	}
	return ""
}
