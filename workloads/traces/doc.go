// Package traces makes a Source of recorded requests: rows of a format become requests. Sessions of agents,
// recorded or synthetic, run concurrently.
//
//	trace.go         Config, Trace: New, Take; a row becomes a request; Account: arrivals, counted by a
//	                 second rowStream
//	queue.go         the queue of requests: the most urgent request that has arrived goes first
//	conversation.go  conversations: a turn waits for the entry of the previous one
//	blocks.go        the entries of requests of blocks, and the hits of a cache without limit
//	stream.go        cycles: the rows of all files and cycles, with constant memory; rowStream: the rows of a
//	                 replay; Rows, for callers that execute no requests
//	file.go          input, file: the usable rows of a file; check: the start of each file
//	merge.go         timeline, merge: merges files recorded on one clock by time
//	schedule.go      schedule: recorded times become arrivals: speed, rate, start, gaps between files
//	interleave.go    traceRow; interleave: concurrent recorded conversations without times
//	session.go       session, step: requests of agents and their dependencies; builder: from rows of blocks
//	reader.go        sessionReader: reads whole sessions of agents from files
//	synthetic.go     synthetic: generates sessions of an assistant, whose prompts grow
//	openloop.go      openLoop: N live sessions as one sequence of requests
//	live.go          Live: the Source of N live sessions in closed loop
//
// A server of agents stores the contexts of all live sessions, each of which has a request now and then: so
// the number of live sessions decides the hits.
//
// Begin with New. A Source here has no clock and no goroutines and is not safe for concurrent use: the engine
// holds one lock around it. The caller closes it; a request belongs to the caller of Take.
package traces
