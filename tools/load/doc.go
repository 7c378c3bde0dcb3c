// Package load reads what the suite printed or wrote, and what the Python benchmark wrote, as
// records, and knows what each was measured with.
//
//	record.go             Record, a result line, a result file, or both
//	load.go               arguments (a file, a directory, a pattern, -); what each is
//	text.go               benchmark text and go test -json, and the result files that they name
//	result.go             result files, ours and the Python benchmark's
//	trials.go             the ranks of a trial as one record
//	document.go           the document of kvreport json, both ways
//	bpftrace.go           saved texts of the Python benchmark's bpftrace script
//	settings.go           what a record tells of its settings, defaults of what it does not
//	                      tell, and which results may be compared
//	tracing.go            histograms of block-layer tracing
//
// What an input is, its content tells and not its name, because results are piped, renamed and
// archived:
//
//	{"kvreport_schema": …             the document of kvreport json
//	{"Action": "output", …            go test -json, with lines of plain text in between
//	{ …                               a result: with schema_version ours, else Python's
//	Attaching 8 probes...  @d2c_…     bpftrace
//	BenchmarkX 1 5 ns/op              anything else is benchmark text
//
// A benchmark's log names its result file: "run.go:12: result: PATH". With -v the log is printed
// before the result line, without it behind the line and below "--- BENCH". A benchmark that failed
// has no line, but often a result; it becomes a record without values. Results move together with
// the text that names them: the longest tail of a path that exists beside the text is taken.
//
// With several clients a trial has a record for each rank, and those share the device: what counts
// is their merged result (kvbench/merge), for which a reader asks with Options.Trials. A run that started
// its ranks has written it already; then theirs are left aside.
//
// Settings come from three places. A result file has all of them, and what the run has found where
// nobody said: workers, the room of the storage tier, the filesystem. Benchmark text has those that
// the user changed, as configuration lines, and the swept ones in the benchmark's name; what it
// does not say is the default of its division. Seven of them define what a number means (division,
// I/O mode, what the device time of a write is, whether time was virtual …): results that differ in
// one are never compared, whatever anybody ignores. Of the others a comparison may ignore what it
// is about. Results of two formats are refused by everybody who puts records side by side.
//
// Reading does not stop at a bad line, which is told with its file and number, but it does at a
// file that cannot be read or holds no result: somebody named it, and a comparison without it would
// look like one with it. Directories are searched, so that other files in them are none of our
// business.
//
// Everything runs on the caller's goroutine; between calls nothing is kept but the defaults of each
// benchmark.
package load
