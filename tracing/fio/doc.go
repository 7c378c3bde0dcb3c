// Package fio makes a fio job from a trace. The job puts the same load on another device: request
// sizes, mix of reads and writes, order, depth, pauses and flushes. The positions of random requests are
// uniform.
//
//	job.go    Input and Job: the job from requests, from calls, or from a mount's transfer sizes
//	load.go   the arrival of requests: depth of each direction, pauses, flushes
//	split.go  sizes as shares that sum to 100, by count and by bytes
//	text.go   the job's text, with a header that names its source and its limits
//
// Job is a pure function: the same trace gives the same text; testdata has golden files. Reads and writes
// are two jobs of fio with their own depths, so that a slower direction does not delay the other on
// another device. They are one job if requests came one at a time or paused together.
//
// A job contains no file, size or runtime, because fio's command line does not override a job. It uses
// no feature that a machine may lack: fio does not start without the huge pages that a job reserves, so a
// job uses ordinary pages and makes fio print what that means.
package fio
