// Package version tells which build of the suite this is: benchmarks write it into their results,
// and every program says it when asked.
//
//	version.go  the revision as linked in, as stamped by the Go command, or of the checkout
//
// It looks at this process and at files of a checkout, and may be used by any goroutine.
package version
