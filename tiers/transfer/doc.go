// Package transfer moves objects between their content and a tier, or between two tiers, in chunks,
// and measures.
//
//	transfer.go   Transfer: Read, Write and Move of objects side by side or layer by layer, with
//	              their times
//	pass.go       Pass: plain requests, one after the other, in one buffer
//	operation.go  one of them under way: what it opens, how it ends
//	stream.go     the loop: one buffer on its way from source to sink, again and again
//	extent.go     which bytes of which object a chunk is
//	streamed.go   the same for tiers whose objects come and go as streams
//
// # Goroutines
//
// An operation has as many streams as it has buffers. A stream runs on whatever goroutine brings
// its last request back, so that nobody waits for a single request: first on the caller's or one of
// its own, then on those of the tier. The caller waits for all streams, or, when its context ends,
// for at most tiers.Grace: a stream whose request is stuck then keeps its buffer until that comes
// back, and nothing else.
package transfer
