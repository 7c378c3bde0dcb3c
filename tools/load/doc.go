// Package load reads what the suite printed or wrote, and what the Python benchmark wrote, as
// records, and knows what each was measured with.
//
//	record.go             Record, a result line, a result file, or both; its block-layer tracing
//	load.go               arguments (a file, a directory, a pattern, -); what each is
//	text.go               benchmark text and go test -json, and the result files that they name
//	result.go             result files, ours and the Python benchmark's
//	trials.go             the ranks of a trial as one record
//	document.go           the document of kvreport json, both ways
//	bpftrace.go           saved texts of the Python benchmark's bpftrace script
//	settings.go           the settings of a record, defaults of those that it lacks,
//	                      and which results may be compared
//
// The content of an input decides its kind, not its name, because results are piped, renamed and
// archived:
//
//	{"kvreport_schema": …             the document of kvreport json
//	{"Action": "output", …            go test -json, with lines of plain text in between
//	{ …                               a result: with schema_version ours, else Python's
//	Attaching 8 probes...  @d2c_…     bpftrace
//	BenchmarkX 1 5 ns/op              anything else is benchmark text
//
// A benchmark's log names its result file: "run.go:12: result: PATH". With -v the log is printed
// before the result line, without it after the line and below "--- BENCH". A benchmark that failed
// has no line, but often a result; it becomes a record without values. Results may move together
// with the text that names them: load takes the longest tail of the path that exists below the
// text's directory.
//
// With several clients a trial has a record for each rank, and those share the device: what counts
// is their merged result (kvbench/merge), for which a reader asks with Options.Trials. A run that started
// its ranks has written it already; then theirs are left aside.
//
// Settings come from three places. A result file has all of them, and also what the run found where
// a parameter was not set: workers, the capacity of the storage tier, the filesystem. Benchmark
// text has the settings that the user changed, as configuration lines, and the swept ones in the
// benchmark's name; the others are the defaults of its division. Seven settings define what a
// number means (division, I/O mode, what the device time of a write includes, whether time was
// virtual …): results that differ in one of them are never compared, and -ignore does not accept
// them. A comparison may ignore the other settings. Results of two formats are never compared.
//
// A bad line is reported with its file and number, and reading goes on. A file that cannot be read
// or holds no result is an error, because the user named it, and a comparison without it would look
// complete. In a directory, files that hold no result are skipped.
//
// Everything runs on the caller's goroutine. Between calls the package keeps only the defaults of
// each benchmark.
package load
