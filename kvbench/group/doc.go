// Package group connects the ranks of one run: the processes, on one host or several, that load a storage
// together. One Leader coordinates the ranks, and each rank has a Member. The process of rank 0 has both the
// leader and a member. The leader carries no load. The member of rank 0 connects to the leader as the
// members of the other ranks do.
//
//	launchers.go  the variables that mpirun, srun and others set, and the address of rank 0
//	process.go    ranks as processes that rank 0 starts on its host
//	hello.go      Hello: a rank, its host and filesystems, and why it is refused
//	link.go       a connection that detects silence
//	member.go     Member: a rank's side, which calls the leader
//	leader.go     Leader: which ranks are connected or lost
//	terms.go      which ranks share filesystems, and on what all ranks of a trial agree
//	trial.go      the calls of a trial: when a phase begins, and the start skew, which is the time between
//	              the first and the last opening of a window
//
// Bytes/s of several ranks can be added only if the ranks measure at the same time. So a trial has steps:
//
//  1. All ranks enter the trial. Each gets the agreed terms.
//  2. Each rank prepares, and reports that it is ready.
//  3. When all are ready, each rank compares its clock with the leader's, and gets the time to begin, by
//     its own clock.
//  4. Each rank sends its result, and then how long after that time its window opened.
//  5. The leader returns the outcome to all ranks. A trial that failed for one rank has failed for all.
//
// A rank calls methods of the leader (net/rpc), one for each step. The call returns when all ranks have come
// to that step. One call of each rank waits for the end of the run.
//
// Clocks are wall clocks. All processes of a kernel read the same one. A step of a clock between the
// comparison and the answer with the time to begin delays a start; later steps do not count, because a
// rank waits by its monotonic clock.
//
// Each rank sends a heartbeat once a second. A rank is lost if it sends nothing for Silence, or if its
// connection ends before it has sent that it leaves. Each rank ends its window by itself. During a
// window the leader and the ranks exchange only heartbeats, so a slow network does not change the numbers.
//
// No received text is executed or used as a path: files are named
// by rank numbers. Messages carry no credentials. Messages are not encrypted, and the name of a job is no
// password, so rank 0 must listen in a closed network only.
//
// Leader is safe for concurrent use. Each call has a goroutine in the leader, which ends with the connection.
package group
