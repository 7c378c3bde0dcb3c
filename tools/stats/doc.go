// Package stats arranges trials as benchmarks × metrics × runs and says what is known of each cell:
// median, confidence interval, spread, and whether runs differ by more than chance.
//
//	table.go         trials → Table: gathered, named, summarized, compared with the first run
//	contrast.go      Contrast: two sides compared by ranks, within turns: exact p values
//	sight.go         Sight: how large a loss is, at least, and which one would have been seen
//	significance.go  Holm's correction, how many trials are needed, spread
//	curves.go        what plots show: merged histograms as percentile curves and octaves
//	format.go        metrics and their values for people
//
// Nothing is assumed of the distributions: medians with the binomial confidence interval of order
// statistics, and one comparison for pages, workbooks and gates. Each side may take its trials in
// turns with the other: then trials of one turn alone are compared. All values are moved by the
// median of their turn and ranked together (the aligned ranks of Hodges and Lehmann, 1962), and the
// p value is the share of all ways to deal the ranks of each turn out to its sides that are as
// extreme. It is exact if trials within a turn could have been exchanged, whatever turns differ by.
// Without turns it is the test of Mann and Whitney. An interval of 95 % needs six samples; with
// fewer it is infinite, and said to be. Three samples a side can never differ significantly: the
// most extreme of the 20 ways to deal them out has p = 0.1.
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
