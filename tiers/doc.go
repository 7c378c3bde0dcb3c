// Package tiers is the vocabulary of the places where cached bytes live: nouns, contracts and
// errors. It does no I/O and imports nothing but the standard library.
//
//	names.go   Kind, Op, Phase, Timing: what results and traces call things
//	tier.go    Object, Tier, Reader, Writer, IO, Buffer: the contract, as tests in tiertest
//	errors.go  what can go wrong, and how an error names its key, offset and errno
//	spec.go    Layout, EngineLayout, DeviceModel: how files are laid out, and a drive that one
//	           does not have
//
// What implements them lies below: filetier, memtier and sim are tiers; transfer moves objects
// through them, in buffers of buffer, filled and verified by content; cache decides which object
// lives where; clock is time; ioengine makes the requests of files, and workdir owns the directory
// that they lie in.
//
// A request belongs to the tier from Submit to Done, wherever its caller has gone: see IO.
package tiers
