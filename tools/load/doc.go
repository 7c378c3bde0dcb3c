// Package load reads outputs and result files of kvbench and of the Python benchmark. It makes records of
// them, each with its settings.
//
//	record.go             Record: a result line, a result file, or both; its block-layer tracing
//	load.go               arguments (a file, a directory, -), and the kind of each input
//	text.go               benchmark text and go test -json, and the result files that they name
//	result.go             result files of kvbench and of the Python benchmark
//	engine.go             results of inference engines' own benchmarks
//	trials.go             merges the ranks of a trial into one record
//	document.go           reads and writes the document of kvreport json
//	bpftrace.go           saved texts of the Python benchmark's bpftrace script
//	settings.go           the settings of a record, defaults of missing settings, and which results
//	                      may be compared
//
// The content of an input decides its kind. Its name does not, because people pipe, rename and archive
// results:
//
//	{"kvreport_schema": …             the document of kvreport json
//	{"Action": "output", …            go test -json, with lines of plain text in between
//	{ …                               a result: kvbench's if it has schema_version, else Python's, else an
//	                                  engine's, by its keys
//	Attaching 8 probes...  @d2c_…     bpftrace
//	BenchmarkX 1 5 ns/op              everything else is benchmark text
//
// A benchmark's log names its result file: "run.go:12: result: PATH". go test -v prints the log before
// the result line; go test without -v prints it after the result line, below "--- BENCH". A failed
// benchmark has no result line, but often a result file: then its record has no values. If the result file
// does not exist at PATH, the user may have moved it together with the text. Then load shortens PATH from
// the left until the rest exists below the text's directory.
//
// With several clients a trial has one record per rank. With Options.Trials, load merges these records
// (kvbench/merge), because the ranks share the device. If the run has already written the merged result,
// load uses it and drops the ranks' records.
//
// Settings come from three places. A result file has all settings, and the values that the run chose
// for unset parameters: workers, the capacity of the storage tier, the filesystem. Benchmark text has
// the settings that the user changed, as configuration lines, and the swept settings in the benchmark's
// name. All other settings have the defaults of the division. Seven settings define what a number means
// (division, I/O mode, what the device time of a write includes, whether time was virtual …). kvreport never
// compares results that differ in one of these seven settings, and -ignore does not accept their names.
// -ignore accepts all other settings. kvreport never compares results of two formats.
//
// load reports a bad line with its file and line number, and reads the other lines. A file on the command
// line that cannot be read or has no result is an error, because a comparison without it looks complete. In
// a directory, load skips files without a result.
//
// The package starts no goroutine. Between calls it keeps only the defaults of each benchmark.
package load
