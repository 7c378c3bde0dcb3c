// Package coordinate is the clients of a run while it goes on: one Leader, which coordinates, and a
// Member in each rank. The leader carries no load; rank 0's process has both, joined by a pipe in
// memory, so that there is one way in which anything is said.
//
//	start.go    the clock that is told to others, what pings tell of clocks, when a phase begins,
//	            and how far the windows' openings lay apart
//	link.go     a connection: a queue of messages, beats, and what is silence
//	member.go   Member: a rank's side, the group.Group of its trial
//	leader.go   Leader: who is there, who is lost, what all have agreed about
//	trial.go    the steps of a trial, as the leader sees them
//
// A trial goes in steps. All enter it, and agree about its terms; each prepares and says that it is
// ready; the leader measures how far clocks lie apart and tells each rank, by its own clock, when
// to begin; each tells when its window really opened, then its result, then that it has cleaned up.
// The outcome is told to all, so that they go on alike: a benchmark that failed for one rank has
// failed for all.
//
// Both sides beat once a second. A rank that says nothing for Silence is lost as one is whose
// connection has ended. Windows end by themselves: nothing is said in them but beats.
//
// Leader and Member are safe for any goroutine. Each has two goroutines for each connection, which
// end with it; the leader's callbacks run on them, and hold up what that rank says next.
package coordinate
