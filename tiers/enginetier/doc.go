// Package enginetier stores objects in files with the system calls of inference engines: the same
// files, names, flags, sizes and order, the same temporary files and renames, and no flush where the
// engine has none.
//
//	tier.go     Config, Tier: moves an object's bytes between the calls of a layout
//	limit.go    limits: requests in flight, as many as the engine has threads
//	group.go    group: several objects of one request that move concurrently
//	layout.go   layout, the interface of layouts, and file, an open object
//	perfile.go  one file per object: vllm-fs, lmcache-fs, hicache-file
//	slots.go    one file of slots that are reused: vllm-slots, kvbm-slots, lmcache-raw,
//	            mooncake-offset
//	buckets.go  mooncake-bucket: several objects in one write
//	calls.go    the system calls, which tests may record
//	platform_*.go  differences between operating systems
//
// The calls are those of the engines' main branches of September 2026; testdata/calls shows each
// layout by example. The suite differs in three points. Files lie in the work directory, which
// removes the files of a killed run. Open calls also have O_CLOEXEC and O_NOFOLLOW. Keys are hashes
// of the suite's keys, with as many digits as the engine's hashes of tokens.
//
// # Ownership
//
// An object's reader or writer and its requests in flight share its descriptor; the last of them
// closes it. A request that hangs in the device keeps it open. No lock is held across a system call.
package enginetier
