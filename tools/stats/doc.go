// Package stats arranges trials as benchmarks × metrics × runs, and computes for each cell the median,
// the confidence interval, the spread and whether the run differs significantly from the first run.
//
//	table.go         Table: trials, grouped, summarized and compared with the first run
//	names.go         names of benchmarks, runs and metrics
//	contrast.go      Contrast: two sides compared by ranks, within blocks: exact p values
//	sight.go         Sight: the estimated loss, its lower bound and the detectable loss
//	significance.go  Holm's correction, and the number of trials that it needs
//	verdicts.go      what limited the trials, and so which rows may be compared
//
// The confidence interval of a median is the binomial interval of order statistics. At 95 % it needs
// six samples; with fewer it is infinite. Pages, workbooks and gates use one comparison, Contrast,
// which assumes no distribution. Sides may have been measured in blocks (paired runs); then only trials
// of one block are compared. All values are moved by the median of their block and ranked together
// (aligned ranks, Hodges and Lehmann, 1962). The p value is the share of all permutations within blocks
// that are at least as extreme. It is exact if trials within a block are exchangeable, whatever the
// differences between blocks. Without blocks it is the Mann-Whitney test. Three samples per side never
// differ significantly: the most extreme of the 20 permutations has the two-sided p = 0.1.
//
// Trials with different settings are never one sample. They are separate benchmarks, whose names have
// the settings in which they differ.
//
// P values of metrics that are judged together are corrected by Holm's method. On a page the family is
// the headline metric of every benchmark that may be compared and has enough samples, for each pair of
// runs. A gate judges the headline metrics and the metrics that the user names. Other metrics are shown
// with their uncorrected p and are not judged. A row may be compared if at least half of the trials of
// both runs were limited by the storage. Gate, page, workbook and quote ask [Change.Judged], so that they
// call the same rows better.
//
// One goroutine builds a Table. After that it is safe for concurrent reading.
package stats
