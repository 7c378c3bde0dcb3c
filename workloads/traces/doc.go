// Package traces replays recorded requests: rows of a format become a Source.
//
//	trace.go      Config, Trace: New, Take; a row becomes a request; Account: arrivals, counted by a
//	              second rowStream
//	queue.go      the queue of requests: the most urgent request that has arrived goes first
//	sessions.go   conversations: a turn waits for the entry of the previous one
//	reader.go     sessionReader: reads whole sessions of agents from files
//	live.go       Sessions: the Source of sessions in closed loop
//	merge.go      timeline, merge: merges files recorded on one clock by time
//	stream.go     rowStream: the rows of all files and cycles, with constant memory; Rows, for callers
//	              that execute no requests
//	file.go       file: the usable rows of a file; check: the start of each file of an input
//	interleave.go traceRow; interleave: concurrent recorded conversations without times
//	schedule.go   schedule: recorded times become arrivals: speed, rate, start, gaps between files
//
// Begin with New. A Trace has no clock and no goroutines and is not safe for concurrent use: the engine
// holds one lock around it. The caller of New closes it; a request belongs to the caller of Take.
package traces
