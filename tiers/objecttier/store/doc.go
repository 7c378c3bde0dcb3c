// Package store is a client of an object store behind several endpoints: the requests of the S3
// protocol, with attempts, failover, time limits and counts. It alone imports minio-go.
//
//	config.go      Config, Op, Attempt, Request, Observer
//	client.go      Client: a request as attempts, and the pauses between them
//	requests.go    Put, Get, Head, Delete and the requests of uploads
//	lists.go       lists, and batch deletions
//	errors.go      Error: kinds, cures, and which failures another attempt may change
//	credentials.go keys of the environment, and texts without them
//	transport.go   connections, and Network: the kernel's counters of them
//	network_*.go   TCP_INFO
//
// The library makes one attempt (MaxRetries 1). Its own retries would not be counted, would not go
// to another endpoint, and would wait up to 0.2 s after each failure. The latency of a request
// holds all attempts and pauses, as an engine would feel them. What the counts need, Client sees as
// the http.RoundTripper of the library.
//
// A Client is safe for concurrent use. Each request runs on its caller's goroutine, except that
// net/http sends bodies on its own.
package store
