// Package tracing has the data of a kernel trace: the queueing time and the device time of requests,
// their sizes and positions, and the losses of the trace.
//
// A trace cross-checks the suite's own counters. If an application reads 100 GiB and its device only 3,
// a cache has completed the reads, and only the kernel's counters show that.
//
//	trace.go      Trace: the histograms by their names, and their Capture
//	capture.go    Capture, Direction, Losses: how a trace was taken and what it missed
//	histogram.go  Histogram, Bucket, percentiles
//	course.go     Course: histograms over time
//	diagnosis.go  one sentence about what limited a run
//	text.go       a Trace for people
//
// Package collector traces the running kernel, package fio turns a Trace into a fio job, and package
// host finds the device behind a directory. This package imports only the standard library, so that
// readers of results need no tracer. It starts no goroutines.
//
// The JSON keys are those of the Python benchmark where it has them, and do not change.
package tracing
