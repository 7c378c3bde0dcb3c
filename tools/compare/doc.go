// Package compare arranges records as benchmarks × metrics × runs and says what is known of each
// cell: median, confidence interval, spread, and whether runs differ by more than chance.
package compare
