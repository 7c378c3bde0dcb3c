// Package tiers defines the types, contracts and errors of cache tiers. It does no I/O and imports
// only the standard library.
//
//	names.go   Kind, Op, Phase, Timing: the names in results and traces
//	tier.go    Object, Tier, Source, Sink: the contract for objects, which tiertest tests
//	files.go   Files, Reader, Writer, IO, Buffer: files, for callers that make the requests
//	errors.go  the errors; each names its key, offset and errno
//	layouts.go Layout, Layouts: the layouts of files, and what engines do with them; DeviceModel: the
//	           model of a drive
//
// The packages below implement them: filetier, memtier and sim are files; transfer makes a
// Tier of files, in buffers of package buffer; objecttier is a Tier of its own; content is the source
// and the sink of all objects; cache decides which tier holds which object; clock is time; ioengine
// submits the requests of files, and workdir owns their directory.
//
// A request belongs to the tier from Submit to Done, also when its caller no longer waits: see IO.
package tiers
