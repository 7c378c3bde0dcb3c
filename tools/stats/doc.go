// Package stats arranges trials as benchmarks × metrics × runs and says what is known of each cell:
// median, confidence interval, spread, and whether runs differ by more than chance.
//
//	table.go         trials → Table: gathered, named, summarized, compared with the first run
//	significance.go  Holm's correction, the least p of a number of samples, spread
//	curves.go        what plots show: merged histograms as percentile curves and octaves
//	format.go        metrics and their values for people
//
// Nothing is assumed of the distributions: medians with the binomial confidence interval of order
// statistics, and the Mann-Whitney test, exact for up to 50 samples without ties
// (golang.org/x/perf). An interval of 95 % needs six samples; with fewer it is infinite, and said
// to be. Three samples a side can never differ significantly: the most extreme of the 20 ways to
// deal them out has p = 0.1.
//
// Trials that were measured with different settings are never one sample: they are benchmarks of
// their own, whose names tell the settings in which they differ, within a run and between runs.
//
// Where several metrics are judged together, their p values are corrected by Holm's method. On a
// page the family is the headline metric of every benchmark that has samples enough, for each pair
// of runs, which is what a gate judges when nobody names another; the other metrics are shown with
// their p taken alone and are not judged.
//
// A table is built by one goroutine and read by many.
package stats
