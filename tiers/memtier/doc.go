// Package memtier keeps entries in memory: the cpu tier.
//
// memtier.go is all of it: Tier gives out memory in blocks of 16 KiB, which need no compaction
// whatever sizes come and go; handle is one writer or reader, which copies in the caller's
// goroutine.
//
// A mutex guards what belongs to whom. Bytes are copied without it: the blocks of an entry are
// fixed from Create on, and live until its last user has gone, requests under way included.
package memtier
