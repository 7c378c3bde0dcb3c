// Package plainio is loads without requests: routines that workers repeat, and the replay
// of an I/O trace. Their unit of completion is the operation.
//
//	plain.go        Routine, Bench: the workload that repeats a routine
//	tier.go         Tier: entries of one size in one tier
//	fileset.go      the objects of a routine in one tier: to read, to write, to remove
//	ceiling.go      Ceiling: plain sequential I/O of files, in one mix of reads and writes;
//	                Removal: files removed, and discarded by the device
//	blocks.go       Blocks: requests of one size at any place in files that stay open
//	knee.go         Knee: the fewest bytes in flight there that are nearly as fast as the best
//	grid.go         its grid: which cells are measured, in which order, and which is the knee
//	concurrent.go   streams concurrently, and what they move in a time
//	sweep.go        the queue-depth sweep: the same at growing numbers of requests in flight
//	mover.go        objects moved chunk by chunk, past cache and transfer; the mix of directions
//	streams.go      the same on a tier that streams
//	replay.go       Replay: executes the rows of an I/O trace
//
// The ceiling, the queue-depth sweep and the knee share how they move and count bytes (mover,
// concurrently), so that their rates can be compared. A step of the sweep has whole files with their
// flushes, in the mix of a run, because it shows what a run would have moved. A cell of the knee has
// requests inside open files, one direction at a time, because the settings of engines are about
// these.
//
// A routine's Step runs on all workers at once; the routine guards what they share.
package plainio
