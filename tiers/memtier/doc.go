// Package memtier keeps entries in memory: the cpu tier.
//
// In memtier.go, Tier allocates memory in blocks of 16 KiB, which need no compaction whatever the sizes
// of entries; handle is one writer or reader, which copies on the caller's goroutine.
//
// A mutex guards the ownership of blocks. Bytes are copied without it: the blocks of an entry are fixed
// from Create on, and are released after its last user, including requests in flight.
package memtier
