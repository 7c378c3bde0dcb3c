// Package verdict computes what limited a run, from the numbers of its result.
//
//	verdict.go   the limits and the rules, in the order in which they are checked
//	evidence.go  the shares, rates and latencies that the rules compare
//	reason.go    the sentence of each verdict
//
// Judge changes nothing. Any goroutine may call it.
package verdict
