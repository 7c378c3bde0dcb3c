// Package stats arranges records as benchmarks × metrics × runs and says what is known of each
// cell: median, confidence interval, spread, and whether runs differ by more than chance.
//
//	table.go           records → Table: gathered, named, summarized, compared with the first run
//	tests.go           Holm's correction, the least p of a number of samples, loss, spread
//	curves.go          what plots show: merged histograms as percentile curves and octaves
//	overtime.go        hit ratios over time
//	format.go          metrics and their values for people
package stats
