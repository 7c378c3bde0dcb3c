// Package kvbench runs one trial: it runs a workload through a measurement window and returns a Result.
//
//	workload.go    Workload, Phase, Counted; Env: the trial's services for a workload; the end of a
//	               trial; free space
//	config.go      Config, StorageConfig: a trial's input; Snapshot: the data of the live line
//	trial.go       Run: the stages of a trial: prepare, load, conclude, clean
//	stack.go       opens tiers, buffers, cache and I/O engine
//	reference.go   Reference: the hits of the default policy for the same requests
//	watchdog.go    timeouts for storage that does not answer and for signals; makes and publishes the
//	               result once
//	watch.go       gauges, the live line
//	observer.go    counts demotions, copies, deletions and failures of the cache; writes the I/O trace
//	unloaded.go    the latency of single requests before the window, for the verdict
//	describe.go    the result's sections on machine, directories, tiers and end; counters of process
//	               and device at the start and the end of the window
//	blocktrace.go  the kernel's block trace of the window
//	simulate.go    Simulate: a trial in virtual time
//
// # Workloads
//
// Package requests is the workload of inference requests. Package plainio is the workload of plain file
// I/O. Run depends on none of them. It gives a workload clock, tiers, cache and recorder, and opens and
// closes the window. The load ends when the workload is done, when the window is over, or when any
// goroutine calls Fail or End.
//
// # Storage that does not answer
//
// A system call that hangs in the kernel blocks its goroutine, perhaps for ever. So the trial runs in a
// goroutine of its own. The caller's goroutine watches it and returns without it when the run has to
// end. The I/O engine keeps a list of the calls in flight. The live line and the result read this list
// and make no call to the storage.
//
// # Goroutines
//
// One goroutine runs the trial and publishes the result. Run may abandon it. Env.Clock.Go starts every
// other goroutine, and these end before the storage is closed. In virtual time these are coroutines of
// the caller's goroutine. The package has no flags and prints nothing.
package kvbench
