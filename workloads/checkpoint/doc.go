// Package checkpoint computes the files of a checkpoint and their bytes, exactly as MLPerf Storage's
// checkpoint workload writes them.
//
//	model.go   Model: dimensions and partition of the four models; parameters
//	files.go   Spec: a model on some accelerators at a scale, or one stream; the files of each
//	           accelerator
//
// The package only computes: it has no clock, storage or goroutine. It is safe for concurrent use.
//
// The results were compared with DLIO, the reference's engine (Argonne's dlio_benchmark in the version
// of mlcommons/storage). testdata/lists.py computes them a second time.
package checkpoint
