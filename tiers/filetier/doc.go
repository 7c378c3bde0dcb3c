// Package filetier stores objects in files of a work directory, in one of several layouts.
//
//	filetier.go  Config, Tier, New: configuration and traits
//	layout.go    policy: how each layout of tiers.Layout fills its files
//	place.go     the file and the offset of each object, and when its place is free again
//	files.go     the files: create, open, close, unlink, punch holes
//	extent.go    Writer and Reader: requests of adjacent objects become requests to an I/O engine
//	probe.go     tests of direct I/O and of holes
//	platform_*.go  differences between operating systems
//
// # Ownership
//
// One mutex guards all metadata; no system call is made while it is held. The users of a place are the
// tier while the object can be opened, each reader and writer, and each of their requests in flight.
// The place is free when the last user releases it. So a request that hangs in the device keeps its
// place and its descriptor, and nothing else.
package filetier
