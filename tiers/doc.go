// Package tiers defines the types, contracts and errors of cache tiers. It does no I/O and imports
// only the standard library.
//
//	names.go   Kind, Op, Phase, Timing: the names in results and traces
//	tier.go    Object, Tier, Reader, Writer, IO, Buffer: the contract, which tiertest tests
//	errors.go  the errors; each names its key, offset and errno
//	layouts.go Layout, Layouts: the layouts of files, and what engines do with them
//	spec.go    DeviceModel: the model of a drive
//
// The packages below implement them: filetier, memtier and sim are tiers; transfer moves objects
// through them in buffers of package buffer, and content fills and verifies the buffers; cache
// decides which tier holds which object; clock is time; ioengine submits the requests of files, and
// workdir owns their directory.
//
// A request belongs to the tier from Submit to Done, also when its caller no longer waits: see IO.
package tiers
