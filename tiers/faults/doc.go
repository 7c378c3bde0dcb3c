// Package faults wraps a tier so that tests can make any of its calls fail, wait or panic.
//
//	faults.go  Tier: the wrapper, its hook, and what it has counted; On: fail one call
//
// A wrapped tier keeps the contract of tiers.Tier: a hook that blocks holds its request and nobody
// else, and what is closed meanwhile ends when the request does. Hooks are called on goroutines of
// the wrapper, many at a time.
package faults
