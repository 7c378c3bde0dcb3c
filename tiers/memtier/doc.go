// Package memtier keeps entries in memory: the cpu tier, and the bookkeeping of the gpu tier.
//
//	memtier.go  Tier, over a Memory; handle is one writer or reader, which copies on the caller's
//	            goroutine
//	pieces.go   which bytes of the memory are free
//
// A mutex guards the ownership of bytes. They are copied without it: the pieces of an entry are fixed from
// Create on, and are released after its last user, including requests in flight.
package memtier
