// Package kvbench is the engine: it runs one workload through one exact window and returns
// one Result.
//
//	workload.go    Workload, Phase, Counted, Climbs, Env: what a load is and what it is lent; trial,
//	               its end, free space
//	config.go      Config, StorageConfig: what a trial is given; Snapshot: what it shows;
//	               Ladder: what more requests in flight would move
//	trial.go       Run: a trial's life: prepare, load, conclude, clean
//	stack.go       the storage side: tiers, buffers, cache, I/O engine
//	roots.go       several directories as one storage tier
//	reference.go   Reference: what the usual policy would have found of the same requests
//	stall.go       storage that does not answer: the end of the trial, what its result says
//	publish.go     the result's way out, and its end where nobody takes it
//	watch.go       gauges, the live line
//	observer.go    counts what the cache does by itself, and writes the I/O trace
//	climb.go       whether more in flight would have moved more, tried after the window
//	describe.go    what a result says of the machine, the tiers and the end; counters of
//	               process and device at the window's edges
//	blocktrace.go  the kernel's trace of the window
//	simulate.go    Simulate: the same life in virtual time
//
// # Workloads
//
// Run knows none: package requests serves requests, plainio repeats routines. It lends
// them clock, tiers, cache and recorder, opens and closes the window, and ends when they
// are done, when it is over, or when anybody calls Fail or End.
//
// # Storage that does not answer
//
// A call that the kernel does not let go of keeps its goroutine, perhaps for ever. So what touches
// the storage runs beside the caller's, which waits through await unless the run is to end. Live
// line and result tell of it from the engine's own notes, and ask the storage nothing.
//
// # Goroutines
//
// The caller's goroutine runs the trial and waits for its end; everybody else begins with
// Env.Clock.Go and is waited for before anything is closed. In virtual time these are
// coroutines of the caller's goroutine. The package knows no flags and prints nothing.
//
// This package is large because the life of a trial is one state: what it opens of every kind of
// storage, in which order that is closed after a signal, and what is noted of it on the way. What
// loads the storage has packages of its own, and so has what the noted numbers become.
package kvbench
