// Package report shows a result to people: the summary at the end of a trial, the lines of a
// benchmark's log, the fio job of its kernel trace.
//
//	summary.go  the summary from the top
//	short.go    what one trial of several has of its own; the few lines for a benchmark's log
//	bytes.go    its tables of what lies in the tiers and what they moved
//	latency.go  its tables of latencies; what the storage answered late, or not at all
//	first_token.go  the time to the first token, and from which length on loading is worth it
//	objects.go  an object store: its requests, its endpoints, its network
//	parts.go    Tables: what only some results have, for text, page and workbook
//	checkpoints.go, plain.go, knee.go, knee_engines.go  the sentences about these loads
//	table.go    Table and how each document draws one; tables in columns of text
//	trials.go   the line that sums up the trials of one benchmark
//	trace.go    the kernel's trace and the fio job that is distilled from it
//
// A section is a function of the result: a table where there are rows, sentences where there is one
// answer. What does not apply is left out, and what is unknown is a dash: absent is never 0. A new
// section is its function, its place in WriteSummary, and a look at the golden files.
//
// An object store takes the place of filesystem and device in other summaries: the lines about
// storage say how it is used, and its cross-check is the kernel's count of bytes from the network.
// Its requests stand below the latencies of entries, because an entry is one of them or several.
//
// The texts are made by Go and not by text/template, which calls methods by their names: the linker
// then keeps every method of the program, and a benchmark's binary is a third larger, with 2 MiB
// more of it in memory.
//
// The summary is one page: its sections share the format of lines, margins and unknown numbers, and
// a change shows in all golden files.
//
// A table that the page and the workbook have too is described here once: a name of each column for
// each document, one unit, and values. The documents differ in what they draw and in how they write
// numbers, not in what there is. Sentences differ, because the text stands in lines with a margin
// and the page in paragraphs.
//
// Columns stand in the order of reading: requests before results, and columns for few readers last.
// A new column gets a name in each document that has it; check the golden files of all three then.
//
// Rows of many results stand in one sheet of the workbook, so that facts about a result as a whole
// (the mode of an autoscaler, the tolerance of a validation) are a column there, by which people
// filter.
//
// The text is made of a result alone, so that a file prints the same as its run. Golden files of
// package record check its words and numbers.
package report
