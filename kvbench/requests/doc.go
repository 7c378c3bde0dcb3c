// Package requests is the workload of inference requests. A source makes the requests. The dispatcher
// plans each request, the cache decides about its entries in the order of dispatch, and workers execute
// the plans.
//
//	load.go       Config, Load: the [kvbench.Workload] and its counts
//	fill.go       writes before the window: population, preconditioning, documents
//	dispatch.go   dispatcher: takes requests, plans and decides; counts the started requests
//	account.go    counts of offered, completed, failed, queued requests at a moment; the number of
//	              workers, and their time
//	worker.go     worker: executes the operations of one request at a time
//	prompt.go     the parts of a prompt, the found parts, and the computing time of the rest
//	scaler.go     scaler: measures rounds, changes users and workers
//	autoscale.go  autoscaler: decides how many users the next round has
//
// # Goroutines
//
// Workers start with the load and end with its context. They share the dispatcher. Its lock keeps the
// decisions in the order of dispatch, and the counts exact at the start and the end of the window. Every
// goroutine waits through the Env's clock, so the same code runs in virtual time. Each worker has its
// own request and lease.
//
// A source may read a file, and the read may hang. The dispatcher calls the source under its lock,
// because the result depends on the order. So a read that hangs stops the dispatch and the counts. The
// watchdog sees the age of the read without the lock.
//
// Workers, counts and autoscaler share one state that changes in one step, so they are in one package.
package requests
