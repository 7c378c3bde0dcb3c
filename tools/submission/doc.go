// Package submission builds the directory tree of a submission to MLPerf Storage from a results
// directory, and checks it against the closed division.
//
//	submission.go   Submission: read the results, check, build the tree in a temporary directory
//	                next to it, of results, run summary, check.md and reports
//	check.go        Check: every way in which results deviate from the closed division
//	metadata.go     what validators ask of a run as a whole, and its logs
//	code.go         the code image: the source as it was measured, and its hash
//	system.go       the description of the system, as far as results and discover have it
//	*.tmpl          the texts: check.md, the description, and what is left to do
//
// Every path in the tree is MLPerf Storage's: <division>/<organisation>/results/<system>/kv_cache/
// <model>/run/<start>, one run with all options, and code, and systems. MLPerf's tools read the run
// summary, which kvbench/merge/summary makes, metadata and logs; the other files are for people.
// The rules are those of Rules.md, schema.yaml and the checker of mlcommons/storage as of August
// 2026; rules_test.go has them as tests, and runs the checker itself where its checkout is named.
//
// Nothing here runs on several goroutines, and nothing is kept from one call to the next.
//
// The division's rules are not here: the recorded parameters are given to kvbench/params once
// more, and its objections are the deviations.
package submission
