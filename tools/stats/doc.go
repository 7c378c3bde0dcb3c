// Package stats arranges trials as benchmarks × metrics × runs and says what is known of each cell:
// median, confidence interval, spread, and whether runs differ by more than chance.
//
//	table.go         trials → Table: gathered, named, summarized, compared with the first run
//	curves.go        what plots show: merged histograms as percentile curves and octaves
//	course.go        what is known over time: histograms of intervals, their percentiles
//	format.go        metrics and their values for people
//
// Medians have the binomial confidence interval of order statistics: of 95 % it needs six samples;
// with fewer it is infinite, and said to be. Pages, workbooks and gates share one comparison, that
// of package contrast.
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
