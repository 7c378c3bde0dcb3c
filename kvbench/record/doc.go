// Package record counts what happens in a trial's window and makes a result of it.
//
//	samples.go     what is reported: operations, requests, decisions, failures, readings
//	recorder.go    the Recorder: the window's gate, the limit of requests, failures
//	shard.go       what one sample adds to
//	counters.go    the numbers, in arrays indexed by what is counted
//	histograms.go  the distributions, likewise, and their names
//	timeline.go    what happened in each interval
//	build.go       numbers to sections of a Result; build_*.go one section each
//	verdict.go     what the load was limited by
//
// A Recorder may be used by any number of goroutines: they meet in a shard's mutex at most. Build
// is a function of its arguments and is called when the Recorder is at rest.
package record
