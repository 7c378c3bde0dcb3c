// Package filetier keeps objects in files of a work directory: in one of several layouts, as
// inference engines do.
//
//	filetier.go  Config, Tier, New: what is configured, what the filesystem can
//	layout.go    policy: how each layout of tiers.Layout fills its files
//	place.go     object → (file, offset): which place an object gets, and when it is free again
//	files.go     the files themselves: made, opened, closed, unlinked, holes punched
//	extent.go    Writer and Reader: requests of adjacent objects, as requests to an engine
//	probe.go     what has to be tried out: direct I/O, holes
//	platform_*.go  what systems name differently
//
// # Ownership
//
// One mutex guards all metadata; no system call is made while it is held. A place is used by the
// tier while its object can be opened, by each reader and writer, and by each of their requests in
// flight: it is free when the last of these releases it. So a request that is stuck in the device
// keeps its place and its descriptor, and nothing else.
package filetier
