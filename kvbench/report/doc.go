// Package report shows a result to people: the summary at the end of a trial, the lines of a
// benchmark's log, the fio job of its kernel trace.
//
//	summary.go  the summary from the top; the few lines for a benchmark's log
//	latency.go  its tables of latencies
//	parts.go    what only some results have
//	table.go    lines with a topic in the margin, tables in columns
//	trace.go    the kernel's trace and the fio job that is distilled from it
//
// A section is a function of the result: a table where there are rows, sentences where there is one
// answer. What does not apply is left out, and what is unknown is a dash: absent is never 0. A new
// section is its function, its place in WriteSummary, and a look at the golden files.
//
// The text is made of a result alone, so that a file reads as its run did. Its words and numbers
// are pinned by golden files beside package record, which makes the results for them.
package report
