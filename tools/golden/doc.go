// Package golden compares what a command wrote with a file that was looked at and committed, and
// has results for tests of everybody who shows them.
//
//	golden.go  Check, with the flag -update; JSON, as commands write it; Parts, results with what
//	           only some benchmarks have
//
// A golden file is the promise of an output: it changes by decision only.
package golden
