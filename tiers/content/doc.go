// Package content is what the bytes of every object are, and whether those that were read are
// these.
//
//	content.go  Content: the bytes as a pure function of nonce, rank, key, generation and offset
//	verify.go   Check, CheckSample, MismatchError: what is wrong where, and which write it is from
//
// Any range can be made at any time, by any number of goroutines: nothing that was written is kept
// to be compared, and chunks of one object are made side by side.
package content
