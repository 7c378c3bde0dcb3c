// Package group connects the ranks of one run: the client processes, on one host or several, that load a
// storage together. The process of rank 0 is the coordinator of the run. It has a Leader, which coordinates
// the ranks and carries no load. Each rank has a Member, which connects to the coordinator; the Member of
// rank 0 does the same.
//
//	launchers.go  the variables that mpirun, srun and others set, and the address of rank 0
//	process.go    ranks as processes that rank 0 starts on its host
//	hello.go      Hello: a rank, its host and filesystems; why the coordinator refuses a rank
//	rpc.go        calls of methods over a connection that detects that the other side is silent
//	member.go     Member: a rank's side, which calls the coordinator
//	leader.go     Leader: the coordinator's side; which ranks are connected or lost
//	terms.go      which ranks share filesystems; the values on which all ranks of a trial agree
//	trial.go      the calls of a trial: when a phase begins, and the start skew, which is the time between
//	              the first and the last opening of a window
//
// Bytes/s of several ranks can be added only if the ranks measure at the same time. So a trial has steps:
//
//  1. All ranks enter the trial. Each gets the agreed terms.
//  2. Each rank prepares, and reports that it is ready.
//  3. When all ranks are ready, each rank compares its clock with the coordinator's. Then it gets the start
//     time by its own clock.
//  4. Each rank sends its result, and then the time from the start time to the opening of its window.
//  5. The coordinator returns the outcome to all ranks. A trial that failed for one rank has failed for all
//     ranks.
//
// A rank calls methods of the coordinator (rpc.go), one for each step. The call returns when all ranks have
// reached this step. One more call of each rank returns when the run is stopped.
//
// The compared clocks are wall clocks. All processes of a kernel read the same wall clock. If someone sets a
// clock after the comparison and before the answer with the start time, this rank starts at a wrong time. A
// later change has no effect, because a rank waits by its monotonic clock.
//
// Each rank sends a heartbeat once a second. A rank is lost if its connection ends before the rank has sent that it
// leaves: the kernel closes the connection of a process that dies. A rank that sends nothing may continue, so it is
// lost only after a longer time (-rank-timeout). A silence that ends is reported with rank, begin and length. Each
// rank ends its window by itself. During a window the coordinator and the ranks exchange only heartbeats, so a slow
// network does not change the numbers.
//
// No received text is executed or used as a path: the names of files have rank numbers. Messages carry no
// credentials. Messages are not encrypted, and the name of a job is no password, so rank 0 must listen in a
// closed network only.
//
// Leader is safe for concurrent use. Each call has a goroutine in the coordinator, which ends with the
// connection.
package group
