// Package record counts what happens in a trial's window, and builds the result from the counts.
//
//	samples.go     what is reported: operations, requests, decisions, readings
//	recorder.go    the Recorder: the window's gate, the limit of requests
//	shard.go       the numbers, in the sections of a Result that report them; what one sample adds to them;
//	               the failures
//	histograms.go  the distributions, by what they are of and by their names
//	timeline.go    what happened in each interval
//	build.go       Build: from what is known and counted to a Result
//	objects.go     Objects: the requests to an object store
//	first_token.go the time to the first token, and the break-even of loading and computing
//	judgement.go   what the load was limited by, what to doubt, whether the trial counts
//
// A Recorder is safe for concurrent use: goroutines contend only for the mutex of a shard. Build is
// called when no more samples come.
package record
