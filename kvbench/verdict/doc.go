// Package verdict says what a run was limited by, from the numbers of its result alone.
//
//	verdict.go   Judge: the kinds, in the order in which they are looked at
//	evidence.go  the shares and rates that they are made of, and the limits
//	reason.go    the sentence beside each
//
// A word is given where a number shows it, and the number is in the sentence; where none does it
// is "undecided", with what was missing. Everything that is not the storage counts as harness. That
// the storage was the limit is shown by one thing only: that with twice and four times as many
// requests in flight it moves no more, as a ladder of plain I/O after the window tried, or as the
// model of a simulated device says.
//
// Judge changes nothing and may be called by any goroutine.
package verdict
