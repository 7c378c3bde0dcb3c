// Package filetier stores objects in files of a work directory. The configuration names the layout, one
// of tiers.Layouts: the suite's own, or an inference engine's with the engine's files, names, flags,
// sizes and order of system calls.
//
//	filetier.go  Config, Tier, New: configuration, traits, statistics
//	objects.go   the table of objects: Create, Open, Remove, Lookup
//	extent.go    Writer and Reader: they turn requests into operations of an I/O engine
//	limit.go     limits: at most as many requests in flight as the imitated engine has threads
//	calls.go     the system calls, which tests may record
//	probe.go     tests of direct I/O and of holes
//	layout.go    layout: the interface of a layout, and the list of layouts
//	files.go     one file per object, flushed
//	packed.go    several objects in a file, flushed
//	slots.go     one file of slots that are reused: the suite's, and kvbm-slots
//	perfile.go   one file per object, written under a temporary name: the layouts of three engines
//	vllm.go, lmcache.go, hicache.go, mooncake.go  the layouts of engines
//	platform_*.go  differences between operating systems
//
// The system calls are those of the engines' main branches of September 2026; testdata/calls has an
// example of each layout. The suite differs in three points. Files are in the work directory, which
// removes the files of a killed run. Open calls also have O_CLOEXEC and O_NOFOLLOW. Keys are hashes of
// the suite's keys, with as many digits as the engine's hashes of tokens.
//
// Not imitated are:
//
//   - vLLM's back-pressure: it drops stores when writing takes longer than 5 ms per MiB
//   - LMCache's index of raw_block, which it saves once a minute, and the limit of fs_native of
//     1,536 MiB in flight
//   - SGLang's second call for an object whose size is no multiple of 4 KiB, and the limits of HiCache's
//     prefetch: nothing below 256 tokens, no requests beyond half the host's memory
//   - Mooncake's thread that writes buckets: the request that fills a bucket writes it and waits. Also
//     its heartbeat of 10 s, after which it begins to write, and its limit of 1.25 GiB in flight
//   - KVBM's memory of the uses of a key beyond its eviction
//
// To add a layout, add a line to tiers.Layouts and a file here that implements layout.
//
// # Ownership
//
// One mutex guards the table of objects and the places in files. No system call is made while it is
// held. The users of an object are the tier, while the object can be opened, and each extent. The users
// of an extent and its descriptors are its owner and its requests in flight. The last user of an object
// frees the place. So a request that hangs in the device keeps only its place and its descriptor.
package filetier
