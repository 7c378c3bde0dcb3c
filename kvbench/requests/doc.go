// Package requests is the load of requests: a source's requests are taken in their order,
// planned, decided by the cache in the order of dispatch, and carried out by workers.
//
//	load.go       Config, Load: the workload as [kvbench.Run] sees it, and its counts
//	fill.go       what is written before the window: population, preconditioning, documents
//	dispatch.go   dispatcher: takes, plans and decides; counts what was started
//	account.go    what was offered and what became of it, also where the source does not answer
//	pool.go       how many workers there are, and their time
//	worker.go     worker: carries out the operations of one request at a time
//	prompt.go     what a prompt asks for, what of it was found, and the time of computing the rest
//	scaler.go     scaler: measures rounds, changes users and workers
//	autoscale.go  autoscaler: decides how many users the next round has
//
// # Goroutines
//
// Workers begin with the load and end with its context; they meet in the dispatcher, whose
// one lock makes the order of decisions that of dispatch, and the counts exact at the
// window's edges. Everybody waits through the Env's clock, so the same code runs in
// virtual time. A worker's request and lease are its own.
//
// A source may read a file, which may never answer. It is asked under the dispatcher's lock, for
// what it gives depends on the order; the counts have a second one, so that whoever looks at the
// load or ends it waits for no file.
//
// This package is large because a request's way through the dispatcher is one state: what its
// workers, its counts and the autoscaler know of each other changes in one step.
package requests
