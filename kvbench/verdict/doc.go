// Package verdict says what a run was limited by, from the numbers of its result alone.
//
//	verdict.go   Judge: the kinds, in the order in which they are checked
//	evidence.go  the shares and rates that they are made of, and the limits
//	reason.go    the sentence of each
//
// Each verdict other than "undecided" follows from a number, which stands in its sentence;
// "undecided" names the number that is missing. Everything that is not the storage counts as
// harness. Only one observation shows that the storage was the limit: with twice and four times as
// many requests in flight it moves no more. A sweep of plain I/O after the window measures that, or
// the model of a simulated device contains it.
//
// Judge changes nothing and may be called by any goroutine.
package verdict
