// Package sessions lets many sessions of agents run side by side: a server of agents has the
// contexts of all live ones to keep, and of each asks now and then.
//
//	session.go  Session, Step: who asks for what, and after whose answers; Builder: rows of blocks
//	            become one
//	merge.go    Merge: N sessions at a time, on their own clocks, as one row of requests
//	live.go     Live: the Source of N sessions at a time that wait for their answers
//	blocks.go   Blocks: the entries of a request of blocks, and what a cache without bounds has
//
// A session comes from a recording (package traces) or is made up (package users). Nothing here has
// a clock or a goroutine, and nothing but a Session, which is plain data, is safe for concurrent
// use.
package sessions
