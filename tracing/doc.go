// Package tracing has the data of a block-layer trace of the kernel: for I/O requests the time in the queue,
// the time at the device, the size and the position, and what the trace has missed.
//
// A trace cross-checks kvbench's own counters. If an application reads 100 GiB and its device only 3 GiB, a
// cache has served the reads, and only the kernel's counters show that.
//
//	trace.go      Trace: the histograms by their names, and their Capture; Bucket, percentiles
//	capture.go    Capture, Direction, Losses: how a trace was taken and what it missed
//	course.go     Course: histograms over time
//	text.go       a Trace as text for people, with one sentence about what limited a run
//
// Package collector traces the running kernel, package fio turns a Trace into a fio job, and package
// host finds the device behind a directory. This package imports only the standard library, so that
// readers of results need no tracer. It starts no goroutines.
//
// The JSON keys do not change. Where the Python benchmark has the same value, the key is the Python
// benchmark's.
package tracing
