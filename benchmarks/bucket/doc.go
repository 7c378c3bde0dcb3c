// Package bucket finds what a run on an object store needs beside its parameters: endpoints, keys
// and certificates, in the environment and in files.
//
//	bucket.go  Config: a bucket as the storage tier; Warnings
//
// It asks no store. Keys are printed nowhere, see package credentials.
package bucket
