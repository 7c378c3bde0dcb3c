// Package filetier keeps objects in files of a work directory: in one of several layouts, as
// inference engines do.
//
//	filetier.go  Config, Tier, New: what is asked for, what the filesystem can
//	layout.go    policy: how each layout of tiers.Layout fills its files
//	place.go     object → (file, offset): who gets which place, and when it is free again
//	files.go     the files themselves: made, opened, closed, unlinked, holes punched
//	recycle.go   files that are overwritten in place of being unlinked and made
//	extent.go    Writer and Reader: requests of objects side by side, as requests to an engine
//	probe.go     what has to be tried out: direct I/O, holes
//	platform_*.go  what systems name differently
//
// # Ownership
//
// All metadata is guarded by one mutex, which nobody holds across a system call. A place is used by
// the tier while its object can be opened, by each reader and writer, and by each of their requests
// under way: it is free when the last of these lets go. So what is stuck in the device keeps its
// place and its descriptors, and nothing else.
package filetier
