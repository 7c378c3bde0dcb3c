// Package tiers holds the bytes: the tiers of the cache (gpu, cpu, storage), the data that fills them, the
// buffers it moves through, and the Cache that decides which entry lives where.
//
// Reading order:
//
//	tier.go      the nouns: Level, Op, Phase, Object, Tier, Writer, Reader
//	errors.go    what can go wrong, and how an error names its key, offset and errno
//	content.go   an entry's bytes as a pure function of nonce, rank, key, generation and offset
//	arena.go     memory in huge pages outside the Go heap
//	pool.go      the fixed set of I/O buffers, given out in order
//	transfer.go  one entry in chunks between content and a tier, with its times
//	filetier.go, cputier.go, gputier.go, nulltier.go  the tiers
//	layout.go    how a storage tier keeps entries in files: a file each, or
//	             slottier.go, packtier.go, chunktier.go; run.go, cache_run.go move neighbours together
//	owneddir.go  the directory that the suite made itself, and the only place where it deletes
//
// The package knows strings, sizes and bytes. It imports no other package of this module.
package tiers
