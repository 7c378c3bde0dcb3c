// Package report makes the sections of a result for people. Text, page and workbook show the same sections.
//
//	section.go  Section: facts in words, and a table; the list of all sections, in the order of
//	            reading; a section as text
//	summary.go  the whole summary of a trial; the few lines for a benchmark's log; the verdict; what to
//	            doubt
//	settings.go what ran: load, storage, input, clients, simulation, autoscaler, replay
//	checkpoints.go, plain.go, knee.go  the sections of checkpoints, plain I/O and the knee, with the
//	            settings for inference engines
//	latency.go  times of entries, of inference requests and of contexts; late calls
//	first_token.go  the time to the first token; the break-even length of loading
//	objects.go  an object store: its requests, its endpoints, its network
//	tiers.go    the content of the tiers, and the bytes that they moved; several directories
//	cache.go    hits, the policy, the comparison with a recording, the load by class
//	harness.go  the cost of the measurement; the counters of the kernel, and of the driver of cards
//	trials.go   a trial in one line; the warnings of all trials; the typical trial of one benchmark
//	quote.go    the table of what may be quoted, over all trials of all benchmarks, and the rule for it
//	trace.go    the block-layer trace, and the fio job with the same load
//
// A section is a function of the result. It leaves out what does not apply. An unknown value is a dash,
// never 0. A new section needs a function, a place in the list, and new golden files.
//
// The documents differ only in how they write a value. Text and page write the value with its unit. The
// workbook writes the bare number below a head with the unit, so that a reader can compute with the number. A
// sheet of the workbook has the rows of many results, and readers sort and filter them. So the name of a row
// must be clear without the other rows, and the name of a column without the other columns.
//
// Columns are in the order of reading: requests before results, and columns for few readers last.
//
// With an object store the lines about storage describe the store instead of the filesystem and the device.
// The cross-check is the kernel's count of network bytes. The section of the store's requests follows the
// latencies of entries, because an entry consists of one or more requests.
//
// A percentile with too few samples is unknown in the result itself: result.Supported decides this for all
// documents. A failed trial has no numbers: package load leaves them out.
//
// The package does not use text/template, which calls methods by their names. The linker would then keep
// every method of the program: a benchmark's binary would be a third larger, and need 2 MiB more memory.
//
// The text depends only on the result, so that a result file prints the same text as its run. Golden files
// check the words and the numbers.
package report
