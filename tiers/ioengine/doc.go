// Package ioengine moves bytes between file descriptors and buffers without making anybody wait.
//
//	ioengine.go  Engine, Op, Kind: what tiers submit
//	stalls.go    Stuck, Stalls: what the device has not answered, or late
//	psync.go     NewPsync: one request per worker thread, made with system calls: whole, whatever
//	             signals and short transfers do
//
// # Ownership
//
// From Submit to Done an Op, its buffer and its descriptor belong to the engine. A device that
// never answers keeps them for ever, and the thread that asked it; Close gives up on them. All
// methods are safe for concurrent use.
//
// No call keeps a Go processor while the kernel waits. Calls that did (raw system calls, unknown to
// the scheduler) read at 0.008 CPU s/GiB here, eight requests of 1 MiB at a time, and a device that
// hung stopped the next garbage collection with them: no signal was heard any more and no result
// written. Ordinary calls take 0.018, at the same rate, because a request that follows another in
// its buffer stays on its worker; with a call per goroutine of the caller it had been 0.024 with
// sixteen spare processors and 0.079 without.
package ioengine
