// Package fio distils a trace into a job for fio that puts the same load on another device: request
// sizes, mix of reads and writes, depth and pauses.
//
//	job.go    Input and Job: what is taken from requests, from calls, or from a mount's sizes
//	split.go  sizes as shares that sum to 100
//	text.go   the job's text, with a header that says where it comes from and what it lacks
//
// Job is a pure function: the same trace gives the same text, which the golden files in testdata
// hold.
package fio
