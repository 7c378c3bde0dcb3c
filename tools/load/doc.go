// Package load reads output and result files of the suite and of the Python benchmark as records, with
// the settings of each.
//
//	record.go             Record: a result line, a result file, or both; its block-layer tracing
//	load.go               arguments (a file, a directory, -), and the kind of each input
//	text.go               benchmark text and go test -json, and the result files that they name
//	result.go             result files of kvbench and of the Python benchmark
//	trials.go             merges the ranks of a trial into one record
//	document.go           reads and writes the document of kvreport json
//	bpftrace.go           saved texts of the Python benchmark's bpftrace script
//	settings.go           the settings of a record, defaults of missing settings, and which results
//	                      may be compared
//
// The content of an input decides its kind, not its name, because people pipe, rename and archive
// results:
//
//	{"kvreport_schema": …             the document of kvreport json
//	{"Action": "output", …            go test -json, with lines of plain text in between
//	{ …                               a result: kvbench's if it has schema_version, else Python's
//	Attaching 8 probes...  @d2c_…     bpftrace
//	BenchmarkX 1 5 ns/op              everything else is benchmark text
//
// A benchmark's log names its result file: "run.go:12: result: PATH". go test -v prints the log before
// the result line, go test without -v after it, below "--- BENCH". A failed benchmark has no result
// line, but often a result file; its record has no values. If results and text moved together, load
// takes the longest tail of the path that exists below the text's directory.
//
// With several clients a trial has one record per rank. With Options.Trials, load merges them
// (kvbench/merge), because the ranks share the device. If the run already wrote the merged result, load
// uses it and drops the ranks' records.
//
// Settings come from three places. A result file has all settings, and the values that the run chose
// for unset parameters: workers, the capacity of the storage tier, the filesystem. Benchmark text has
// the settings that the user changed, as configuration lines, and the swept settings in the benchmark's
// name; all other settings are the defaults of the division. Seven settings define what a number means
// (division, I/O mode, what the device time of a write includes, whether time was virtual …). Results
// that differ in one of them are never compared, and -ignore does not accept them. -ignore accepts all
// other settings. Results of two formats are never compared.
//
// A bad line is reported with its file and line number, and the rest is read. A file on the command line
// that cannot be read or has no result is an error, because a comparison without it looks complete. In a
// directory, files without a result are skipped.
//
// The package starts no goroutine. Between calls it keeps only the defaults of each benchmark.
package load
