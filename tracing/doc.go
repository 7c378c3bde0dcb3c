// Package tracing is what the kernel saw of a run, as data: how long each request waited and how
// long the device took, its size and place, and how far all that can be trusted.
//
// It is the cross-check of the suite's own counting. An application that believes it read 100 GiB
// while its device delivered 3 was served by a cache, and only the kernel knows.
//
//	trace.go      Trace: the histograms by their names, and their Capture
//	capture.go    Capture, Direction, Losses: how a trace was taken and what it missed
//	histogram.go  Histogram, Bucket, percentiles
//	course.go     Course: how histograms grew over time
//	diagnosis.go  one sentence about what limited a run
//	text.go       a Trace for people
//
// Package collector makes a Trace of a running kernel, package fio a job for fio of a Trace,
// package host finds the device behind a directory. This one imports nothing but the
// standard library: who reads a trace from a result needs no tracer. All of it is plain data;
// nothing here starts a goroutine.
//
// The JSON keys are those of the Python benchmark where it has them, and do not change.
package tracing
