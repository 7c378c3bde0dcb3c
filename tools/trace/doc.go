// Package trace makes fio jobs: of any running process, whose block requests it watches, and of
// results and texts that hold a trace.
//
//	trace.go    Options and Run: watch processes or a device, report, distil, make a result
//	watch.go    the tracing itself, the live line, when it ends
//	fiojob.go   Jobs: the traces of results and bpftrace texts
//
// Watching ends when the time is over, with Ctrl-C, or when the last process of a watched id has
// ended; the report is made in each case, and nothing stays in the kernel. The live line is for
// terminals only: what is piped gets the report and nothing else.
//
// Requests count for the process that queued them; what the page cache writes back later counts for
// the process that had written to the file, as far as it was seen writing. What remains is counted,
// and said.
//
// Jobs name no file and no size: what they load is given to fio, and a job that named a device
// would be run on it some day.
package trace
