// Package plainio is loads without requests: routines that workers repeat, and the replay
// of an I/O trace. Their unit of completion is the operation.
//
//	plain.go        Routine, Bench: the workload that repeats a routine
//	tier.go         Tier: entries of one size in one tier
//	shelf.go        the objects of a routine in one tier: to read, to write, to remove
//	ceiling.go      Ceiling: plain sequential I/O of files, in one mix of reads and writes
//	field.go        files that stay open, with requests at any place in them
//	blocks.go       Blocks: requests of one size there
//	knee.go         Knee: the fewest bytes in flight there that are as fast as any
//	hunt.go         its search, without a storage: which pairs are measured, and which it is
//	pair.go         a size and a number, and what was measured of them
//	removal.go      Removal: files removed, and discarded by the device
//	ladder.go       Climb: the same at growing numbers of requests in flight
//	mover.go        objects moved chunk by chunk, past cache and transfer; the mix of directions
//	streams.go      the same on a tier that streams
//	replay.go       Replay: carries out the rows of an I/O trace
//	replay_plan.go  what a row becomes, decided in the order of the file
//
// Climb is for others, too: an engine that wants to know after its window whether more in flight
// would have moved more is given it as kvbench.Climber.
//
// This package is large because its loads share how they move bytes and how they count them (mover,
// Bench): a ceiling, a ladder and a knee that measured by rules of their own could not be compared,
// which is all that they are for.
//
// The knee has no rungs of Climb's. What both need is shared: buffers, places, streams beside each
// other (mover, beside), and by transfer.Pass the submission of requests. They differ in what they
// count: a rung tells what a run would have moved, of whole files with their flushes and of the
// mix of a run, from one moment to another; a pair of the knee compares requests inside files that
// are open already, one direction at a time, in whole requests, where four of 16 MiB must not lose
// to 4,096 of 4 KiB by what is under way at the end. One function for both would be these two
// behind an if.
//
// A routine's Step runs on all workers at once; what they share it guards itself.
package plainio
