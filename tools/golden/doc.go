// Package golden compares a command's output with a committed file, and has results for the tests
// of all packages that show them.
//
//	golden.go  Check, with the flag -update; JSON, as commands write it; Parts, results with what
//	           only some benchmarks have
//	changed.go  Changed, JSON with other values, for scripts
//
// A golden file is the promise of an output: it changes by decision only.
package golden
