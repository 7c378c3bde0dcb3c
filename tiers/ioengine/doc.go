// Package ioengine moves bytes between file descriptors and buffers without making anybody wait.
//
//	ioengine.go  Engine, Op, Kind: what tiers submit
//	choose.go    Open: the engine that was asked for, or the better one
//	psync.go     NewPsync: one request per worker thread, made with system calls: whole, whatever
//	             signals and short transfers do
//	uring_linux.go  NewURing: rings of the kernel, and the memory that they know
//	looper_linux.go  a ring's thread, which submits many requests and reaps their completions in
//	             one system call; package ring has the ring itself
//	stalls.go    Stuck, Stalls: what the device has not answered, or late
//
// # Ownership
//
// From Submit to Done an Op, its buffer and its descriptor belong to the engine. A device that
// never answers keeps them for ever, and the thread that asked it; Close gives up on them. All
// methods are safe for concurrent use.
//
// Done runs on a worker of psync, of which every request has one, or on the thread of a ring, which
// many requests share: there whatever Done does holds up the others of the ring.
//
// No call keeps a Go processor while the kernel waits. Calls that did (raw system calls, unknown to
// the scheduler) read at 0.008 CPU s/GiB here, eight requests of 1 MiB at a time, and a device that
// hung stopped the next garbage collection with them: no signal was heard any more and no result
// written. Ordinary calls take 0.018 in psync, at the same rate, because a request that follows
// another in its buffer stays on its worker; with a call per goroutine of the caller it had been
// 0.024 with sixteen spare processors and 0.079 without.
package ioengine
