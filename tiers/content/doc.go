// Package content generates the bytes of every object, and verifies bytes that were read.
//
//	content.go  Content: the bytes as a pure function of nonce, rank, key, generation and offset
//	source.go   Source: the bytes of objects that are written; Verifier compares what is read
//	verify.go   Check, CheckSample, MismatchError: the first wrong byte, and the write it comes from
//
// Any range can be generated at any time, by any number of goroutines: verification needs no copy of
// written bytes, and chunks of one object are generated concurrently.
package content
