// Package checkpoint writes and reads back the checkpoints of a training run: MLPerf Storage's
// workload, a set of files per simulated accelerator.
//
//	checkpoint.go  Config, Load: the workload of one trial, which writes or reads; the procedure
//	write.go       one checkpoint written: every accelerator its files, one after the other
//	pipeline.go    from producers through buffers to writes in flight, and which side waits
//	send.go        the same to a store, which asks for the parts of objects
//	read.go        one checkpoint read and verified; whether it came from the device
//	folder.go      the content of ckpt_<model>, by its marker: Folder, for writes and reads
//	rules.go       what the closed division requires, and what was found
//
// Writing and reading are a trial each, since a result holds one. The second finds the files by the
// directory's marker, whether it runs right after the first or in another process on another day.
//
// # Clients
//
// The accelerators of a run are divided among its clients in blocks (Config.First and Count). Each
// checkpoint begins and ends at a barrier of the group, and the marker records it after that.
// Clients do not send each other their times: each has its part in its own result, and package
// merge combines them. They work in one directory, see workdir.Options.Shared.
//
// # Goroutines
//
// While a checkpoint is written each accelerator has one goroutine that goes through its files, and
// one for each of its writes in flight; the producers serve all accelerators. They end with the
// checkpoint. A buffer belongs to the side that has its slot: a producer fills it, a writer submits
// it to the tier, and it returns to the producers only after the tier has completed it.
package checkpoint
