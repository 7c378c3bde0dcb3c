// Package plainio has the workloads of plain I/O: routines that workers repeat, and the replay of an I/O
// trace. Their unit of completion is the operation.
//
//	plain.go        Routine, Bench: the workload that repeats a routine
//	fileset.go      fileSet: the objects of a routine in one tier, and the operations on whole objects
//	tier.go         Tier: entries of one size in one tier, moved as the cache moves them
//	ceiling.go      Ceiling: plain sequential I/O of files, in one mix of reads and writes;
//	                Removal: files removed, and discarded by the device
//	sweep.go        the queue-depth sweep of a Ceiling: the same I/O at growing numbers in flight
//	blocks.go       Blocks: requests of one size at any place in files that stay open
//	knee.go         Knee: the fewest bytes in flight that are within 5 % of the best rate
//	grid.go         the grid of the knee: its cells, their order, and the choice of the knee
//	measure.go      measurement: the rate of concurrent streams over a time
//	mover.go        moves objects chunk by chunk, without cache and transfer
//	streams.go      moves objects of an object store
//	replay.go       Replay: executes the rows of an I/O trace
//
// The ceiling, the queue-depth sweep and the knee move bytes with the same code (mover), and the sweep
// and the knee count them with the same code (measurement), so that their rates can be compared. A step
// of the sweep moves whole files with their flushes, in the run's mix of reads and writes. A cell of the
// knee has requests inside open files in one direction, because engines have settings for such requests.
//
// A routine's Step runs on all workers at once; the routine guards what they share.
package plainio
