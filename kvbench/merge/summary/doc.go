// Package summary sums the results of several clients: over ranks within a trial, then the mean
// over trials, as MLPerf Storage does, and next to that what the clients did together.
//
//	summary.go    Summary and its parts, the schema of summary.json; Aggregate
//	option.go     one option or benchmark: sums, means, spread, merged percentiles
//	write.go      the summary as JSON and as text
//
// The keys named aggregated_… are those of MLPerf Storage's launcher and are defined as there:
// bandwidths and token rates of the storage are summed over the ranks of a trial, and the mean is
// taken over the trials; the p95 of the device is the largest of all ranks and trials. That sum
// overstates what the storage did when clients start at different times, and a maximum says nothing
// of the distribution. So the common window (the bytes that moved between the last start and the
// first end, from the timelines) and percentiles of the merged histograms stand next to them.
//
// Ranks that are missing or failed leave their share out of the sums and make the summary partial;
// a rank that was served wholly from memory is listed, and an option where all were is invalid.
// Results that differ in a setting or in the model are options of their own: "1 [num-users=100]".
//
// Checkpoints of several ranks are merged by kvbench/merge, as they are for pages and gates. A run
// that starts its ranks writes its summary itself; kvreport aggregate makes the same of the same
// files.
//
// The same results give the same bytes, so that a summary can be checked by making it again. The
// text on the terminal has one line for each option; what is missing or invalid stands in it,
// because the sums look the same without a rank.
package summary
