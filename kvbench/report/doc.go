// Package report shows a result to people: as sections that text, page and workbook print alike.
//
//	section.go  Section: facts in words and a table; the one list of sections, in the order of
//	            reading; a section as text
//	summary.go  the summary at the end of a trial, of one trial of several, and the few lines for a
//	            benchmark's log; the verdict; what to doubt
//	settings.go what ran: load, storage, input, clients, simulation, autoscaler, replay
//	checkpoints.go, plain.go, knee.go, knee_engines.go  these loads
//	latency.go  times of entries, of requests and of contexts; calls that the storage completed late
//	first_token.go  the time to the first token, and from which length on loading is worth it
//	objects.go  an object store: its requests, its endpoints, its network
//	tiers.go    what the tiers hold and moved; several directories
//	cache.go    hits, the policy, the comparison with a recording, the load by class
//	harness.go  the cost of measuring, the kernel's counters
//	trials.go   the line that sums up the trials of one benchmark
//	trace.go    the kernel's trace and the fio job that is distilled from it
//
// A section is a function of the result. What does not apply is left out, and what is unknown is a
// dash: absent is never 0. A new section is its function, its place in the list, and a look at the
// golden files.
//
// The documents differ only in how they write a value. Text and page write it with its unit; the
// workbook writes a bare number below a head with the unit, so that a reader can compute with it.
// In the workbook rows of many results stand in one sheet, where they are sorted and filtered: so a
// row's name says what it is without the rows around it, and a column's without those before it.
//
// Columns stand in the order of reading: requests before results, and columns for few readers last.
//
// An object store takes the place of filesystem and device in other summaries: the lines about
// storage say how it is used, and its cross-check is the kernel's count of bytes from the network.
// Its requests stand below the latencies of entries, because an entry is one of them or several.
//
// A percentile with too few samples is unknown in the result itself (result.Supported decides that
// for all documents), and a trial that failed has no numbers: package load leaves them out.
//
// The texts are made by Go and not by text/template, which calls methods by their names: the linker
// then keeps every method of the program, and a benchmark's binary is a third larger, with 2 MiB
// more of it in memory.
//
// The text is made of a result alone, so that a file prints the same as its run. Golden files check
// its words and numbers.
package report
