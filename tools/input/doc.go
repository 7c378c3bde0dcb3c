// Package input reads what the suite printed or wrote, and what the Python benchmark wrote, as records,
// and knows what each was measured with.
//
//	input.go, record.go  arguments (a file, a directory, a glob, -) → records; Record
//	stream.go            what a file is, its content tells; go test -json
//	scanner.go, log.go   benchmark text, line by line, and the result files that it names
//	result.go, python.go result files, ours and the Python benchmark's
//	tree.go              a directory of results by option, trial and rank
//	document.go          the document of kvreport json, both ways
//	settings.go, …       the settings that define a number, and which results may be compared
//	tracing.go           histograms of block-layer tracing
//
// Text is streamed in constant memory; everything runs on the caller's goroutine.
package input
