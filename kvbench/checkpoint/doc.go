// Package checkpoint writes and reads back the checkpoints of a training run: MLPerf Storage's
// workload, a set of files per simulated accelerator.
//
//	checkpoint.go  Config, Load: the workload of one trial, which writes or reads; the procedure
//	write.go       one checkpoint written: every accelerator its files, one after the other
//	pipeline.go    from producers through buffers to writes in flight, and which side waits
//	send.go        the same to a store, which asks for the parts of objects
//	read.go        one checkpoint read and verified; whether it came from the device
//	folder.go      what lies in ckpt_<model>, by its marker: Folder, for writes and reads
//	rules.go       what the closed division asks for, and what was found
//
// Writing and reading are a trial each, since a result holds one; the second knows of the first by
// the marker of the directory, whether it runs right after it or in another process on another day.
//
// # Clients
//
// The accelerators of a run are shared out among its clients in blocks (Config.First and Count).
// Each checkpoint begins at a barrier of the group, and at another one all have come to their end,
// before the marker says so. Clients do not send each other their times: each has its part in its
// own result, of which package merge makes the whole. They work in one directory: workdir.Join.
//
// # Goroutines
//
// While a checkpoint is written each accelerator has one goroutine that goes through its files, and
// as many as it has writes in flight; the producers serve all accelerators. They end with it. A
// buffer belongs to the side that has its slot: a producer fills it, a writer hands it to the tier,
// and only what the tier has completed comes back to the producers.
package checkpoint
