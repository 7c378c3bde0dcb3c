// Package transfer makes a tiers.Tier from tiers.Files. It moves objects in chunks between their source
// or sink and the files, and measures the time.
//
//	tier.go       Tier: Put and Get of adjacent objects, or layer by layer
//	operation.go  operation: one Put or Get in progress
//	stream.go     stream: the loop that moves one buffer, chunk by chunk
//	pass.go      Pass: plain requests, one at a time, in one buffer
//
// # Goroutines
//
// An operation has one stream per buffer. A stream runs on the goroutine that completes its last
// request, so that no goroutine waits for a single request: first on the caller's goroutine or on a new
// one, then on the tier's goroutines. The caller waits for all streams, but for at most tiers.Grace
// after its context has ended. After that a stream whose request hangs only keeps its buffer, until the
// request completes.
package transfer
