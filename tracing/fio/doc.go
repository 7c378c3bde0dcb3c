// Package fio distils a trace into a job for fio that puts the same load on another device: request
// sizes, mix of reads and writes, order, depth, pauses and flushes. The places of random requests
// are uniform.
//
//	job.go    Input and Job: what is taken from requests, from calls, or from a mount's sizes
//	load.go   how requests came: depth of each direction, pauses, flushes
//	split.go  sizes as shares that sum to 100, by count and by bytes
//	text.go   the job's text, with a header that says where it comes from and what it lacks
//
// Job is a pure function: the same trace gives the same text, which the golden files in testdata
// hold. Reads and writes are two jobs of fio's, each with its own depth, so that on another device
// the slower direction does not hold back the other; they are one where requests came one at a time
// or paused together.
//
// A job names no file, no size and no runtime: fio's command line does not override what a job
// says. Nor does it ask for anything that a machine may lack: fio does not start without the huge
// pages that a job wants reserved, so a job takes ordinary ones and has fio print what that means.
package fio
