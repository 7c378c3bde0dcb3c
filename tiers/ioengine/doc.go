// Package ioengine moves bytes between file descriptors and buffers asynchronously.
//
//	ioengine.go  Engine, Op, Kind: the interface to tiers
//	choose.go    Open: the requested engine, or the better one
//	psync.go     NewPsync: one request per worker thread, with blocking system calls that are
//	             repeated after signals and short transfers
//	uring_linux.go  NewURing: io_uring rings and their registered memory
//	looper_linux.go  a ring's thread, which submits many requests and reaps their completions in
//	             one system call; package ring has the ring itself
//	stalls.go    Stuck, Stalls: requests that the device completes late or never
//
// # Ownership
//
// From Submit to Done an Op, its buffer and its descriptor belong to the engine. A device that hangs
// keeps them, and the thread of the call, for ever; Close does not wait for them after its context
// has ended. All methods are safe for concurrent use.
//
// With psync Done runs on the request's own worker. With io_uring Done runs on the thread of a ring,
// which many requests share: a slow Done delays the other requests of the ring.
//
// No call keeps a Go processor while the kernel waits. Raw system calls, unknown to the scheduler,
// did: they read at 0.008 CPU s/GiB here, with eight requests of 1 MiB in flight, but when a device
// hung the next garbage collection stopped for ever, no signal was handled and no result written.
// Ordinary calls take 0.018 in psync, at the same rate, because a request that follows another in its
// buffer stays on its worker. One call per goroutine of the caller took 0.024 with sixteen spare
// processors and 0.079 without.
package ioengine
