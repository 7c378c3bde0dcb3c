// Package group is the ranks of one run: the processes, on one host or several, that load a storage
// together. One Leader coordinates; each rank has a Member. The leader carries no load: rank 0's
// process has both, and its member connects to the leader as all others do.
//
//	launchers.go  the variables that mpirun, srun and others set, and the address of rank 0
//	process.go    ranks as processes that rank 0 starts on its host
//	hello.go      Hello: a rank, its host and filesystems, and why it is refused
//	message.go    the messages between the leader and the members
//	meet.go       the address at which rank 0 listens and to which all connect
//	link.go       a connection: a queue of messages, heartbeats, and what is silence
//	member.go     Member: a rank's side
//	leader.go     Leader: which ranks are connected or lost, and which share filesystems
//	trial.go      the steps of a trial, as the leader sees them
//	clock.go      clock offsets from pings, when a phase begins, how far the windows' openings lay
//	              apart
//
// What several ranks measure is their sum only if they measure at the same time. So a trial goes in
// steps. All enter it, and agree about its terms; each prepares and sends that it is ready; the
// leader measures how far clocks lie apart and sends each rank, by its own clock, when to begin;
// each sends when its window opened, then its result, then that it has cleaned up. The outcome goes
// to all: a benchmark that failed for one rank has failed for all.
//
// Both sides send a heartbeat once a second. A rank that is silent for Silence is lost, as is one
// whose connection has ended. Windows end by themselves: nothing but heartbeats is sent during
// them, so that a slow network does not become part of the numbers.
//
// Messages are JSON, one after the other. Nothing received is executed, or used as a path: files
// are named by rank numbers. Messages carry no credentials. Nothing is encrypted, and a job's name
// is no password: addresses are for a closed network.
//
// Leader and Member are safe for any goroutine. Each has two goroutines for each connection, which
// end with it; the leader's callbacks run on them, and hold up the next message of that rank.
package group
