// Package buffer has the memory of requests: allocated once, outside the Go heap, and in huge pages
// where the system grants them.
//
//	pool.go      Use: how many buffers a run can use; Pool: buffers of equal size, given out in FIFO
//	             order
//	arena.go     Arena: the memory of a pool, or of the memory tier
//	arena_*.go   allocation on each system; on the heap under the race detector
//
// The caller of Get owns a buffer until Put, and the tier owns it while a request is in flight. A pool
// with a request that hangs cannot be closed: Close returns an error.
package buffer
