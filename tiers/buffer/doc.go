// Package buffer is the memory that requests move bytes through: outside the Go heap, in huge pages
// where the system gives them, taken once.
//
//	pool.go      Use: how many buffers a run can use; Pool: equal ones, in the order of asking
//	arena.go     Arena: the memory under them, and under the memory tier
//	arena_*.go   how systems give it; on the heap where the race detector has to see it
//
// A buffer belongs to whoever got it until Put, and to a tier while a request is under way: a pool
// with a stuck request cannot be closed, and says so.
package buffer
