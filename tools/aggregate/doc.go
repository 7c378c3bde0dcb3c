// Package aggregate sums the results of several clients: over ranks within a trial, then the mean
// over trials, as MLPerf Storage does, and beside that what the clients did together: bandwidth
// over their common window, start skew, and percentiles of their merged histograms.
package aggregate
