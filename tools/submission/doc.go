// Package submission builds the directory tree of a submission to MLPerf Storage from a results
// directory, and checks it against the closed division.
//
//	submission.go   Submission: read the results, check, build the tree in a temporary directory
//	                next to it, of results, run summary and check.md
//	rules.go        the table of rules by number, layouts and placeholders: next year's rules are an edit here
//	check.go        Check: the deviations from the closed division, and what the rules check
//	metadata.go     the metadata of a run that validators read, and the run's logs
//	code.go         the code image: the source at the measured commit, and its hash
//	system.go       the system description, with the values that results and discover have
//	*.tmpl          the templates: check.md, the system description, the list of what is left to do
//
// The paths in the tree are the paths of MLPerf Storage: <division>/<organisation>/results/<system>/
// kv_cache/<model>/run/<start> for a run with all options, code-<hash> for the code image, and systems
// for the system description. MLPerf's tools read the run summary, which kvbench/merge makes, the
// metadata and the logs. People read the other files.
//
// The package starts no goroutine and has no state.
//
// The rules for parameters are in kvbench/params. This package passes the recorded parameters to
// kvbench/params again, and each objection is a deviation.
package submission
