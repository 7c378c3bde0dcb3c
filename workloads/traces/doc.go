// Package traces has the Sources of recorded requests: rows of a format become requests. Sessions of
// agents, recorded or synthetic, run concurrently.
//
//	input.go         input: the start of each file, and their order; file; reader: the usable rows of
//	                 all files and cycles, with concurrent files merged
//	replay.go        Replay: the rows that a configuration replays; interleave: concurrent recorded
//	                 conversations without times
//	schedule.go      schedule: recorded times become arrivals: speed, rate, start, gaps between files
//	trace.go         Config, Trace: New, Take; a row becomes a request; Account: arrivals
//	queue.go         the queue of requests: the most urgent request that has arrived goes first;
//	                 conversations: a turn waits for the entry of the previous one
//	blocks.go        the entries of requests of blocks, and the hits of a cache without limit
//	session.go       session, step: requests of agents and their dependencies; builder: from rows of
//	                 blocks; sessionReader: from files
//	live.go          stage: N live sessions; openLoop: their requests at the recorded times; Live: their
//	                 Source in closed loop
//	synthetic.go     synthetic: generates sessions of an assistant, whose prompts grow
//
// A server of agents stores the contexts of all live sessions. Each session has a request now and then,
// so the number of live sessions decides the hit rate.
//
// Begin with New. A Source has no clock and no goroutines and is not safe for concurrent use: the
// engine holds one lock around it. The caller closes it. A request belongs to the caller of Take.
package traces
