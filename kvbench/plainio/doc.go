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
//	beside.go       streams beside each other, and what they move in a time
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
// A rung of Climb and a measurement of the knee are the same: streams beside each other (beside),
// each of which gives requests to the device one after the other (transfer.Pass) and counts them
// for itself, and the mean of all (beside.go). They differ in what is asked for: a rung has whole
// files with their flushes in the mix of a run, because it says what a run would have moved; a pair
// of the knee has requests inside files that are open already, one direction at a time, because an
// engine's settings are what it finds. After a window of such requests (Blocks, Knee) rungs have
// them too, in the same files. And a rung is one of three, measured once; a knee lies among fifty
// pairs, and takes a search.
//
// A routine's Step runs on all workers at once; what they share it guards itself.
package plainio
