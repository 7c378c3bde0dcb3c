// Package transfer makes a tiers.Tier of tiers.Files: it moves objects in chunks between their content
// and the files, and measures the time.
//
//	tier.go       Tier: Put and Get of adjacent objects, or layer by layer
//	operation.go  operation: one Put or Get in progress
//	stream.go     stream: the loop that moves one buffer, chunk by chunk
//	pass.go       Pass: plain requests, one after the other, in one buffer
//
// # Goroutines
//
// An operation has as many streams as it has buffers. A stream runs on the goroutine that completes
// its last request, so that no goroutine waits for a single request: first on the caller's goroutine
// or one of its own, then on the tier's. The caller waits for all streams, or for at most tiers.Grace
// after its context has ended. A stream whose request hangs then only keeps its buffer, until the
// request completes.
package transfer
