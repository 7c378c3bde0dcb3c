// Package verdict states what limited a run, from the numbers of its result alone.
//
//	verdict.go   the limits and the rules, in the order in which they are checked
//	evidence.go  the shares, rates and latencies that the rules compare
//	reason.go    the sentence of each verdict
//
// Judge changes nothing and may be called by any goroutine.
package verdict
