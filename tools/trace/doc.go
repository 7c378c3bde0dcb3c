// Package trace traces the block requests of processes or devices, and makes fio jobs of traces in
// results and in bpftrace output.
//
//	trace.go    Options and Run: trace, write the report, make the fio job and the result file
//	watch.go    the tracing, its end and the live line
//	fiojob.go   Jobs: fio jobs of the traces in results and bpftrace output
//
// Tracing ends when the duration is over, with Ctrl-C, or when the process of -pid and its children
// have ended. The report is written in each case, and nothing stays in the kernel. A live line is shown
// only on a terminal.
//
// A request counts for the process that queued it. Writeback of the page cache counts for the process
// that wrote to the file, if tracing saw that. Other requests are reported separately.
//
// A job names no file and no size: the user gives them to fio. A job with a device name could destroy
// its data.
package trace
