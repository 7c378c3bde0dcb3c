package filetier

import (
	"fmt"
	"math"

	"kvbench/tiers"
)

// pageSize is the minimum alignment of places in files.
const pageSize = 4096

// policy describes how a layout fills files. The rest of the package is the same for all layouts.
type policy struct {
	what   string // for warnings
	places int    // objects in a file
	slot   int64  // > 0: one preallocated file of reusable slots of this size
	// flush: Commit makes files durable. Without it a write reaches the device only with direct I/O.
	flush bool
	// exact: a file has exactly the size of its object, without the padding of direct I/O, and its
	// flush includes all metadata.
	exact bool
	// preallocate: with direct I/O Create allocates an object's blocks, so that a full disk fails
	// before the first byte, and writes do not extend the file.
	preallocate bool
}

// policyOf returns the policy of a layout.
//
//   - Files: one file per object, flushed.
//   - Named: one file per object, of exactly the object's size, flushed, for readers that look for
//     files by their names.
//   - Slots: one preallocated file of slots of equal size, as in engines that offload blocks of fixed
//     size: nothing is created, flushed or unlinked per object. An object takes the lowest free slot,
//     so that objects written together are adjacent as far as free slots are.
//   - Packed: several objects in a file, in the order of Create. A place is used once: after the
//     object's removal a hole frees its blocks. The file is removed with its last object.
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

// describe returns the layout's part of the tier's description.
func (p policy) describe() string {
	switch {
	case p.slot > 0:
		return fmt.Sprintf(", one file of slots of %d KiB", p.slot>>10)
	case p.places > 1:
		return fmt.Sprintf(", files of %d entries", p.places)
	}
	return ""
}
