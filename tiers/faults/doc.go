// Package faults wraps files so that tests can make any of their calls fail, wait or panic.
//
//	faults.go  Files: the wrapper, its hook, and what it has counted; On: fail one call
//
// The wrapper keeps the contract of tiers.Files: a hook that blocks only delays its own request. A
// reader or writer that is closed in the meantime ends with that request. Hooks run concurrently, on
// goroutines of the wrapper.
package faults
