// Package store is a client of an object store behind several endpoints. It makes the requests of the S3
// protocol, with attempts, failover, time limits and counts. Of the other packages only
// benchmarks, for credentials, and the tests' server import minio-go.
//
//	addresses.go   FindEndpoints: URLs separated by commas or in a file, with ranges, of the first source
//	endpoints.go   Balance, Endpoint: the endpoint of each attempt, and which endpoints back off
//	config.go      Config, Op, Attempt, Request, Observer
//	client.go      Client: a request as attempts, and the pauses between them
//	requests.go    Put, Get, Head, Delete and the requests of uploads
//	lists.go       lists, and batch deletions
//	errors.go      Error: kinds, advice, and which failures another attempt may avoid
//	credentials.go keys of the environment, and their removal from texts
//	transport.go   connections, and Network: the kernel's counters of them
//	network_*.go   TCP_INFO
//
// The library makes one attempt (MaxRetries 1). Its own retries would not be counted, would not go to
// another endpoint, and would wait up to 0.2 s after each failure. The latency of a request includes all
// attempts and pauses, as for an engine. Client counts as the http.RoundTripper of the library.
//
// A Client is safe for concurrent use. Each request runs on its caller's goroutine, but net/http sends
// bodies on its own goroutines.
package store
