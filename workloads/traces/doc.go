// Package traces replays recorded requests: rows of a format become a Source.
//
//	trace.go      Config, Trace: New, Take; a row becomes a request; Account: what has arrived,
//	              counted by a second rowStream; what a cache without bounds would find of blocks
//	queue.go      requests that wait: the most urgent of those that have arrived goes first
//	sessions.go   conversations: which turn waits for which entry
//	stream.go     rowStream: files and cycles, row after row, with constant memory; Rows, for
//	              those who serve no requests
//	schedule.go   schedule: recorded times into arrivals: speed, rate, start, seams between files
//
// Begin with New. A Trace has no clock and no goroutine and is not safe for concurrent use: the
// engine holds one lock around it. Whoever opened it closes it; requests belong to who took them.
package traces
