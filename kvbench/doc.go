// Package kvbench runs one trial: it runs a workload through a measurement window and returns a Result.
//
//	workload.go    Workload, Phase, Counted; Env: what the trial gives its workload; how a trial ends;
//	               free space
//	config.go      Config, StorageConfig: the input of a trial; Snapshot: the data of the live line
//	trial.go       Run: the stages of a trial: prepare, load, conclude, clean
//	stack.go       opens tiers, buffers, cache and I/O engine
//	cards.go       opens the cards of the gpu tier; the counters of their driver
//	reference.go   Reference: the hits of the default policy for the same requests
//	watchdog.go    ends a trial after a signal, or if the storage does not answer; makes and publishes
//	               the result once
//	watch.go       gauges, the live line
//	observer.go    counts demotions, copies, deletions and failures of the cache; writes the I/O trace
//	pauses.go      times in which this process did not run
//	unloaded.go    the latency at queue depth 1 before the window, for the verdict
//	describe.go    the sections of the result about the machine, the directories, the tiers and the end
//	               of the trial; the counters of process and device at the start and the end of the
//	               window
//	blocktrace.go  the block-layer trace of the window (eBPF)
//	simulate.go    Simulate: a trial in virtual time
//
// # Workloads
//
// Package requests is the workload of inference requests. Package plainio is the workload of plain file
// I/O. Run depends on neither package. It gives the workload the clock, the tiers, the cache and the
// recorder, and it opens and closes the window. The load ends when the workload has completed, when the
// window is over, or when any goroutine calls Fail or End.
//
// # Storage that does not answer
//
// A system call that hangs in the kernel blocks its goroutine, perhaps for ever. So the trial has its own
// goroutine. The caller's goroutine watches the trial, and returns without it if the run has to end. The
// I/O engine keeps a list of the calls in flight. The live line and the result read this list and make no
// call to the storage.
//
// # Goroutines
//
// One goroutine runs the trial and publishes the result. Run may abandon this goroutine. Env.Clock.Go
// starts all other goroutines, and they end before the storage is closed. In virtual time they are
// coroutines of the caller's goroutine. The package has no flags and prints nothing.
package kvbench
