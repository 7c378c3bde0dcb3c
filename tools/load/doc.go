// Package load reads what the suite printed or wrote, and what the Python benchmark wrote, as
// records, and knows what each was measured with.
//
//	record.go            Record, one trial: a result line, a result file, or both
//	load.go              arguments (a file, a directory, a glob, -) → what each is, its content tells
//	text.go, log.go      benchmark text and go test -json, and the result files that they name
//	result.go, python.go result files, ours and the Python benchmark's
//	tree.go              a directory of results by option, trial and rank
//	document.go          the document of kvreport json, both ways
//	settings.go          the settings that define a number, and which results may be compared
//	settings_told.go     what a record tells of its settings, and what holds when it does not
//	tracing.go           histograms of block-layer tracing
//
// Everything runs on the caller's goroutine.
package load
