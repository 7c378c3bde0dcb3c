// Package record counts what happens in a trial's window and makes a result of it.
//
//	samples.go     what is reported: operations, requests, decisions, failures, readings
//	recorder.go    the Recorder: the window's gate, the limit of requests, failures
//	shard.go       what one sample adds to
//	counters.go    the numbers, in the sections of a Result that tell them
//	histograms.go  the distributions, in arrays indexed by what they are of, and their names
//	timeline.go    what happened in each interval
//	failures.go    the table of errors and the first of them
//	build.go       Build: from what is known and counted to a Result
//	latency.go     its distributions
//	python.go      the keys of the Python benchmark
//	judgement.go   what the load was limited by, what to doubt, whether the trial counts
//
// A Recorder may be used by any number of goroutines: they meet in a shard's mutex at most. Build
// is a function of its arguments and is called when the Recorder is at rest.
package record
