// Package kvbench is the engine: it runs one workload through one exact window and returns
// one Result.
//
//	workload.go    Workload, Phase, Counted, Env: a load and what it may use; trial, its end, free
//	               space
//	config.go      Config, StorageConfig: a trial's input; Snapshot: what it shows
//	trial.go       Run: a trial's life: prepare, load, conclude, clean
//	stack.go       the storage side: tiers, buffers, cache, I/O engine
//	reference.go   Reference: what the usual policy would have found of the same requests
//	watchdog.go    storage that does not answer, and signals: the times after which a trial stops
//	               waiting; the result, made and published once
//	watch.go       gauges, the live line
//	observer.go    counts what the cache does by itself, and writes the I/O trace
//	unloaded.go    the latency of single requests before the window, for the verdict
//	describe.go    what a result says of the machine, the directories, the tiers and the end;
//	               counters of process and device at the window's edges
//	blocktrace.go  the kernel's trace of the window
//	simulate.go    Simulate: the same life in virtual time
//
// # Workloads
//
// Run knows no particular workload: package requests serves requests, plainio repeats routines. Run
// gives them clock, tiers, cache and recorder, opens and closes the window, and ends when they are
// done, when the window is over, or when any goroutine calls Fail or End.
//
// # Storage that does not answer
//
// A call that hangs in the kernel keeps its goroutine, perhaps for ever. A trial runs in one goroutine
// and blocks in such a call; the caller of Run watches it and returns without it when the run has to
// end. Live line and result show such calls from the engine's own notes, and make no call to the
// storage.
//
// # Goroutines
//
// Run's own goroutine runs the trial, publishes its result and may be abandoned; every other one begins
// with Env.Clock.Go and ends before anything is closed. In virtual time these are coroutines of the
// caller's goroutine. The package knows no flags and prints nothing.
package kvbench
