// Package transfer moves objects in chunks between their content and a tier, or between two tiers,
// and measures the time.
//
//	transfer.go   Transfer: Read, Write and Move of adjacent objects, or layer by layer
//	pass.go       Pass: plain requests, one after the other, in one buffer
//	operation.go  operation: one Read, Write or Move in progress
//	stream.go     stream: the loop that moves one buffer from source to sink, chunk by chunk
//	extent.go     the objects' bytes in a chunk: generation and verification
//	streamed.go   Read, Write and Move for tiers with Traits.Stream
//
// # Goroutines
//
// An operation has as many streams as it has buffers. A stream runs on the goroutine that completes
// its last request, so that no goroutine waits for a single request: first on the caller's goroutine
// or one of its own, then on the tier's. The caller waits for all streams, or for at most tiers.Grace
// after its context has ended. A stream whose request hangs then only keeps its buffer, until the
// request completes.
package transfer
