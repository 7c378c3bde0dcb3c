// Package compute computes how long a server takes to compute tokens that the cache does not have, and
// from which length on loading is faster.
//
//	cost.go        Cost: seconds per token and per token squared; how flags write it
//	server.go      Server: the time of the one server that all requests share, also layer by layer
//	published.go   Published: measured rates by model and GPU, with sources
//	breakeven.go   Loading, BreakEven: the length at which loading beats computing
//
// Begin with Cost. All types but Server are plain data, and all are safe for concurrent use. The
// package is below package workloads and imports nothing of the module.
package compute
