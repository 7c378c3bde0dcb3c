package tiers

// LayoutKind says how a storage tier keeps entries in files.
type LayoutKind uint8

// The layouts.
const (
	LayoutFiles  LayoutKind = iota // a file each: FileTier
	LayoutSlots                    // one preallocated file of slots: SlotTier
	LayoutPacked                   // several entries in a file: PackTier
	// likewise, those of one stretch of a request: PackTier with PackOptions.Grouped
	LayoutGrouped
	LayoutChunks // several files for an entry: ChunkTier
)

// Layout is how a storage tier keeps entries in files. The zero Layout is a file each.
type Layout struct {
	Kind LayoutKind
	// Bytes of a slot (LayoutSlots), which is that of the largest entry at least, or of a file
	// (LayoutChunks).
	Bytes int64
	// Places is how many entries a file holds (LayoutPacked, LayoutGrouped), at least 2.
	Places int
}
