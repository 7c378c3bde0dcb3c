// Package sessions runs many sessions of agents concurrently: a server of agents stores the contexts of
// all live sessions, each of which has a request now and then.
//
//	session.go  Session, Step: requests and their dependencies; Builder: a session from rows of blocks
//	merge.go    Merge: N live sessions in open loop, as one sequence of requests
//	live.go     Live: the Source of N live sessions in closed loop
//	blocks.go   Blocks: the entries of a request of blocks, and the hits of a cache without limit
//
// A session is recorded (package traces) or synthetic (package users). The package has no clock and no
// goroutines. Only a Session, which is plain data, is safe for concurrent use.
package sessions
