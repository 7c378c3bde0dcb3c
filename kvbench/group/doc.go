// Package group connects the ranks of one run: the processes, on one host or several, that load a storage
// together. One Leader coordinates the ranks, and each rank has a Member. The process of rank 0 has both the
// leader and a member. The leader carries no load. The member of rank 0 connects to the leader as the
// members of the other ranks do.
//
//	launchers.go  the variables that mpirun, srun and others set, and the address of rank 0
//	process.go    ranks as processes that rank 0 starts on its host
//	hello.go      Hello: a rank, its host and filesystems, and why it is refused
//	link.go       the messages, and a connection that carries them
//	member.go     Member: a rank's side
//	leader.go     Leader: which ranks are connected or lost
//	terms.go      which ranks share filesystems, and on what all ranks of a trial agree
//	trial.go      the steps of a trial, as the leader sees them: when a phase begins, and the start skew,
//	              which is the time between the first and the last opening of a window
//
// Bytes/s of several ranks can be added only if the ranks measure at the same time. So a trial has steps:
//
//  1. All ranks enter the trial. The leader sends each rank the agreed terms.
//  2. Each rank prepares, and sends that it is ready.
//  3. The leader compares the clocks of all ranks with its own. It sends each rank the time to begin, by
//     the clock of that rank.
//  4. Each rank sends how long after that time its window opened, then its result, then that it has
//     cleaned up.
//  5. The leader sends the outcome to all ranks. A trial that failed for one rank has failed for all.
//
// Clocks are wall clocks. All processes of a kernel read the same one. A step of a clock between the
// comparison and the message with the time to begin delays a start; later steps do not count, because a
// rank waits by its monotonic clock.
//
// Both sides send a heartbeat once a second. A rank is lost if it sends nothing for Silence, or if its
// connection ends before it has sent that it leaves. Each rank ends its window by itself. During a
// window the leader and the ranks exchange only heartbeats, so a slow network does not change the numbers.
//
// Messages are JSON, one after the other. No received text is executed or used as a path: files are named
// by rank numbers. Messages carry no credentials. Messages are not encrypted, and the name of a job is no
// password, so rank 0 must listen in a closed network only.
//
// Leader is safe for concurrent use. Each connection has a goroutine that reads and one that writes. Both end
// with the connection. The leader calls LeaderConfig.Result on the goroutine that reads, so the next message
// of that rank waits until the call returns.
package group
