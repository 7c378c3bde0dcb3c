// Package store is one client of an object store behind several endpoints: the requests of the S3
// protocol, with attempts, failover, time limits and counts. It alone imports the library that
// makes and signs those requests of which a run has few.
//
//	config.go    Config, Op, Observer: what a client is told, and what it tells
//	errors.go    Error: what went wrong, what cures it; which errors are tried again
//	attempt.go   Client, do: one request as attempts, and the pauses between them
//	requests.go  Put, Get, Head, Delete and the requests of uploads
//	direct.go    GET, PUT, HEAD and DELETE of objects past the library
//	sign.go      headerSigner: the signatures of those
//	sweep.go     lists, and deletions by the thousand
//	transport.go connections: how they are made, and Network, what the kernel says of them
//	network_*.go how kernels are asked: TCP_INFO
//
// The library tries nothing again (MaxRetries 1): an attempt that it made by itself would be in
// nobody's count, would not go to another endpoint, and would wait for up to 0.2 s after a failure.
// Latencies of requests hold all attempts and pauses, as an engine would feel them.
//
// A Client is safe for concurrent use. Each request runs on its caller's goroutine, but for the
// bodies that net/http sends on its own.
package store
