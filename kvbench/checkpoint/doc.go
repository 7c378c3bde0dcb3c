// Package checkpoint is the workload that writes and reads the checkpoints of a training run, as in
// MLPerf Storage. A checkpoint has a set of files per simulated accelerator.
//
//	checkpoint.go  Config, Load: the workload of one trial, which writes or reads; the procedure
//	write.go       writes one checkpoint
//	pipeline.go    producers, buffers and writes in flight; the waits of both sides
//	send.go        writes to an object store, which pulls the parts of an object
//	read.go        reads and verifies one checkpoint; whether the bytes came from the device
//	folder.go      Folder: the work directory ckpt_<model> and its marker file
//	rules.go       the rules of the closed division, and whether the run met them
//
// Writes and reads are separate trials. The trial that reads finds the files by the directory's marker
// file. So it may run in the same process or in a later one.
//
// # Clients
//
// The accelerators of a run are divided among its clients in blocks (Config.First and Count). Each
// checkpoint starts at a barrier of the group. Each client has its part of a checkpoint in its own
// result, and package merge combines the parts. All clients work in one directory, see
// workdir.Options.Shared.
//
// # Goroutines
//
// While a checkpoint is written, each accelerator has one goroutine that writes its files in order, and
// one goroutine per write in flight. The producers are goroutines for all accelerators. All of these end
// with the checkpoint. With Config.Before the producers end before its time starts.
package checkpoint
