// Package trace makes fio jobs: from the block requests of running processes, and from results and
// texts with a trace.
//
//	trace.go    Options and Run: watch processes or a device, report, distil, make a result
//	watch.go    the tracing itself, the live line, when it ends
//	fiojob.go   Jobs: the traces of results and bpftrace texts
//
// Tracing ends when the time is over, with Ctrl-C, or when the last process of a given id has
// ended; the report is made in each case, and nothing stays in the kernel. The live line is for
// terminals only: a pipe gets the report and nothing else.
//
// Requests count for the process that queued them. Later writes of the page cache count for the
// process that was seen writing to the file; the rest is counted and reported separately.
//
// Jobs name no file and no size: what they load is given to fio, and a job that named a device
// would be run on it some day.
package trace
