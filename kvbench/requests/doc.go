// Package requests is the load of requests: workers take a source's requests in order, the plan and
// the cache's decisions follow in the order of dispatch, and the workers execute them.
//
//	load.go       Config, Load: the workload as [kvbench.Run] sees it, and its counts
//	fill.go       what is written before the window: population, preconditioning, documents
//	dispatch.go   dispatcher: takes, plans and decides; counts what was started
//	account.go    what was offered and what became of it, also where the source does not answer
//	pool.go       how many workers there are, and their time
//	worker.go     worker: executes the operations of one request at a time
//	prompt.go     the parts of a prompt, the found ones, and the time of computing the rest
//	scaler.go     scaler: measures rounds, changes users and workers
//	autoscale.go  autoscaler: decides how many users the next round has
//
// # Goroutines
//
// Workers begin with the load and end with its context. They share the dispatcher, whose one lock
// keeps decisions in the order of dispatch, and the counts exact at the window's edges. Every
// goroutine waits through the Env's clock, so the same code runs in virtual time. A worker's
// request and lease are its own.
//
// A source may read a file, and the file may never answer. The dispatcher calls the source under
// its lock, because the result depends on the order. A second lock guards the counts, so that the
// live line and the end of the load wait for no file.
//
// This package is large because a request's way through the dispatcher is one state: the state that
// workers, counts and autoscaler share changes in one step.
package requests
