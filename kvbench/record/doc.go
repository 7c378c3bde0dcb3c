// Package record counts what happens in a trial's window and makes a result of it.
//
//	samples.go     what is reported: operations, requests, decisions, readings
//	recorder.go    the Recorder: the window's gate, the limit of requests
//	shard.go       what one sample adds to
//	counters.go    the numbers, in the sections of a Result that report them, and the failures
//	histograms.go  the distributions, by what they are of and by their names
//	timeline.go    what happened in each interval
//	build.go       Build: from what is known and counted to a Result
//	objects.go     Objects: the requests to an object store
//	first_token.go the time to the first token, where computing takes some, and the break-even
//	judgement.go   what the load was limited by, what to doubt, whether the trial counts
//
// A Recorder may be used by any number of goroutines: they meet in a shard's mutex at most. Build
// is a function of its arguments and is called when the Recorder is at rest.
package record
