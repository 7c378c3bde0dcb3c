// Package stats arranges trials as benchmarks × metrics × runs and says what is known of each cell:
// median, confidence interval, spread, and whether runs differ by more than chance.
//
//	table.go         trials → Table: gathered, summarized, compared with the first run
//	names.go         names of benchmarks, runs and metrics
//	curves.go        what plots show: merged histograms as percentile curves and octaves
//	course.go        time series: histograms of intervals, their percentiles, rates
//	contrast.go      Contrast: two sides compared by ranks, within blocks: exact p values
//	sight.go         Sight: how large a loss is, at least, and the detectable effect
//	significance.go  Holm's correction, how many trials are needed
//
// Medians have the binomial confidence interval of order statistics: of 95 % it needs six
// samples; with fewer it is infinite, and reported as such. Pages, workbooks and gates share one
// comparison, Contrast, which assumes nothing of the distributions. Each side may take its
// trials in blocks with the other (paired runs): then only trials of one block are compared. All
// values are moved by the median of their block and ranked together (the aligned ranks of Hodges
// and Lehmann, 1962), and the p value is the share of all permutations within the blocks that
// are as extreme. It is exact if trials within a block are exchangeable, however blocks differ.
// Without blocks it is the test of Mann and Whitney. Three samples a side can never differ
// significantly: the most extreme of the 20 permutations has p = 0.1.
//
// Trials that were measured with different settings are never one sample: they are benchmarks of
// their own, whose names have the settings in which they differ, within a run and between runs.
//
// Where several metrics are judged together, their p values are corrected by Holm's method. On a
// page the family is the headline metric of every benchmark that has samples enough, for each pair
// of runs. A gate judges the same metric unless another is named. The other metrics are shown with
// their p taken alone and are not judged.
//
// A table is built by one goroutine and read by many.
package stats
