// Package traces replays recorded requests: rows of a format become a Source.
//
//	trace.go      Config, Trace: New, Take; a row becomes a request; Account: what has arrived,
//	              counted by a second rowStream
//	queue.go      requests that wait: the most urgent of those that have arrived goes first
//	sessions.go   conversations: which turn waits for which entry
//	reader.go     sessionReader: sessions of agents out of files, each as a whole
//	live.go       Sessions: the Source of those that wait for their answers
//	merge.go      timeline, merge: files that were recorded on one clock, by their rows' times
//	stream.go     rowStream: files and cycles, row after row, with constant memory; Rows, for
//	              those who serve no requests
//	file.go       file: its usable rows; check: how each file of an input begins
//	interleave.go traceRow; interleave: recorded conversations, which have no times, concurrently
//	schedule.go   schedule: recorded times into arrivals: speed, rate, start, seams between files
//
// Begin with New. A Trace has no clock and no goroutine and is not safe for concurrent use: the
// engine holds one lock around it. The caller that opened it closes it; requests belong to who took
// them.
package traces
