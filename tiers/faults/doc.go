// Package faults wraps a tier so that tests can make any of its calls fail, wait or panic.
//
//	faults.go  Tier: the wrapper, its hook, and what it has counted; On: fail one call
//
// A wrapped tier keeps the contract of tiers.Tier: a hook that blocks only delays its own request. A
// reader or writer that is closed in the meantime ends with that request. Hooks run concurrently, on
// goroutines of the wrapper.
package faults
