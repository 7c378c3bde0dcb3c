// Package submission builds the directory tree of a submission to MLPerf Storage from a results
// directory, and checks it against the closed division.
//
//	submission.go      Submission: read the results, check, build the tree beside its place, of
//	                   results, run summary, check.md and reports
//	check.go           Check: every way in which results deviate from the closed division
//	system.go          the description of the system, as far as results and discover tell
//	check.md.tmpl, system.yaml.tmpl   the two texts
//
// Every path in the tree is MLPerf Storage's: <division>/<organisation>/results/<system>/kv_cache/
// <model>/run/<start>. What its tools look for in there is a run summary, which
// kvbench/merge/summary makes of each model's results alone; whatever else stands beside it is for
// people.
//
// Nothing here runs on several goroutines, and nothing is kept from one call to the next.
//
// The division's rules are not here: the recorded parameters are given to kvbench/params once
// more, and its objections are the deviations.
package submission
