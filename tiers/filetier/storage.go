package filetier

import (
	"fmt"

	"kvbench/tiers"
	"kvbench/tiers/workdir"
)

// NewStorageTier makes the tier that keeps capacity bytes of entries in that layout, and returns the FileTier inside it
// too, which knows about direct I/O and has the warnings. Errors say what of the layout the filesystem refuses.
func NewStorageTier(dir *workdir.Dir, opt FileOptions, l tiers.Layout, capacity int64) (tiers.Tier, *FileTier, error) {
	switch l.Kind {
	case tiers.LayoutFiles:
		t, err := NewFileTier(dir, opt)
		return t, t, err
	case tiers.LayoutSlots:
		t, err := NewSlotTier(dir, opt, l.Bytes, capacity)
		if err != nil {
			return nil, nil, fmt.Errorf("make a file of %d bytes for slots: %w", capacity, err)
		}
		return t, t.FileTier, nil
	case tiers.LayoutPacked, tiers.LayoutGrouped:
		t, err := NewPackTier(dir, opt, PackOptions{Places: l.Places, Grouped: l.Kind == tiers.LayoutGrouped})
		if err != nil {
			return nil, nil, err
		}
		return t, t.FileTier, nil
	case tiers.LayoutChunks:
		t, err := NewChunkTier(dir, opt, l.Bytes)
		if err != nil {
			return nil, nil, err
		}
		return t, t.FileTier, nil
	}
	return nil, nil, fmt.Errorf("make a storage tier: there is no layout %d", l.Kind)
}
