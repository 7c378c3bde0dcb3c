// Package bucket finds what a run on an object store needs in addition to its parameters: endpoints,
// keys and certificates, in the environment and in files.
//
//	bucket.go  Config: a bucket as the storage tier; Warnings
//
// It makes no request to the store. No text shows a key: see package store.
package bucket
