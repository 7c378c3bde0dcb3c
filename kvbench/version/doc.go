// Package version returns the revision of this build: benchmarks write it into their results, and
// every program prints it on request.
//
//	version.go  the revision as linked in, as stamped by the Go command, or of the checkout
//
// It looks at this process and at files of a checkout, and may be used by any goroutine.
package version
