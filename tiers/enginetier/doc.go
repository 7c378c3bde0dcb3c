// Package enginetier keeps objects in files as inference engines do, call by call: the same files,
// names, flags, sizes and order, temporary file and rename, and no flush where they have none.
//
//	tier.go     Config, Tier: an object's bytes between the calls of a layout, and how many calls
//	            for bytes are under way, as the engine has threads
//	beside.go   beside: objects of a request that are under way at the same time
//	layout.go   layout, the seam, and file, what is open; which layout is whose
//	perfile.go  a file for each object: vllm-fs, lmcache-fs, hicache-file
//	slots.go    one file of places that are used again: vllm-slots, kvbm-slots, lmcache-raw,
//	            mooncake-offset
//	buckets.go  mooncake-bucket: several objects written at once
//	calls.go    the system calls, each of which a test may be told of
//	platform_*.go  what systems name differently
//
// What an engine is said to do here is its main line of September 2026; testdata/calls shows each
// layout by example. Three things are the suite's own: files lie in a directory of the work
// directory, which removes those of a run that was killed; O_CLOEXEC and O_NOFOLLOW stand beside
// the engine's flags; and keys are hashes of the suite's keys, of as many digits as the engine's
// hashes of tokens.
//
// This package is large because the calls of eight layouts are told one by one, with what their
// engines do and do not do, and stand where they can be compared.
//
// # Ownership
//
// An object's descriptor is used by its reader or writer and by their requests under way, and
// closed when the last of them lets go: what is stuck in the device keeps it. No lock is held
// across a system call.
package enginetier
