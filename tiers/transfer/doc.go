// Package transfer makes a tiers.Tier from tiers.Files. It moves objects in chunks between their source
// or sink and the files, and measures the time.
//
//	tier.go       Tier: Put and Get of adjacent objects, or layer by layer
//	operation.go  operation: one Put or Get in progress
//	stream.go     stream: the loop that moves one buffer, chunk by chunk
//	pass.go       Pass: plain requests, one at a time, in one buffer
//
// # Goroutines
//
// An operation has one stream per buffer. No goroutine waits for a single request. A stream starts on the
// caller's goroutine or on a new one. After each request it continues on the goroutine of the tier that has
// completed the request. The caller waits for all streams, but for at most tiers.Grace after its context
// has ended. Then a stream whose request hangs still keeps its buffer, until the request completes.
package transfer
