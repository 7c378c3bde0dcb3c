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
// An object store takes the places that a filesystem and its device have in other summaries: the
// lines about storage say how it is used, and its cross-check is the kernel's count of what came over
// the network. Its requests stand below the latencies of entries, because an entry is one of them
// or several.
//
// The texts are made by Go and not by text/template, which calls methods by their names: the linker
// then keeps every method of the program, and a benchmark's binary is a third larger, with 2 MiB
// more of it in memory.
//
// The summary is one page: its sections share how a line, a margin and an unknown number are
// written, and a change of that is seen in all golden files.
//
// A table that the page and the workbook have too is described here once: a name of each column for
// each document, one unit, and values. The documents differ in what they draw and in how they write
// numbers, not in what there is. Sentences differ, because the text stands in lines with a margin
// and the page in paragraphs.
//
// Columns stand in the order of reading: what was asked for before what came of it, and what only a
// reader of numbers needs behind what everybody reads. A new one gets a name in each
// document that has it; the golden files of all three then change, and are looked at.
//
// Rows of many results stand in one sheet of the workbook, so that what holds for a result as a
// whole (the mode of an autoscaler, the tolerance of a validation) is a column there and not words:
// people filter by it.
//
// The text is made of a result alone, so that a file reads as its run did. Its words and numbers
// are pinned by golden files of package record, which makes the results for them.
package report
