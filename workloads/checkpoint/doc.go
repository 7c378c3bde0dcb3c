// Package checkpoint says which files a checkpoint has, and of how many bytes: those of MLPerf
// Storage's checkpoint workload, to the byte.
//
//	model.go   Model: dimensions and partition of the four models; parameters
//	files.go   Spec: a model on some accelerators at a scale, or one stream; the files of each of
//	           them
//
// Everything is plain data and arithmetic: no clock, no file of a storage, no goroutine. It is safe
// for concurrent use.
//
// The numbers were compared with those that DLIO, the reference's engine, computes itself
// (Argonne's dlio_benchmark as mlcommons/storage pins it); testdata/lists.py works them out a
// second time.
package checkpoint
