// Package curve answers how large a cache must be for recorded traffic, for every capacity at once.
//
//	curve.go  Options and Run: a trace, a model, a drive → Report
//	text.go   the report for people, as a table; for programs, as values separated by commas
//	charts.go  the report as a page with the curve
//
// Package workloads/reuse computes the counts. This package answers a storage buyer's questions:
// which share of the blocks is found, which rates of reads and writes that needs on average and in
// the busiest minute, how fast the drive wears, when it is full, and from where more capacity stops
// to pay. The policy is LRU on one level; benchmark runs measure others.
//
// Rates follow from the recorded times. The mean is over the time from the first request to the
// last, the peak over the busiest interval of whole minutes from the first request on: a device
// that only reaches the mean falls behind there. Drive writes per day are the mean rate of a day
// over the drive's size; without a drive, over the capacity of the row, as if the drive had no
// other use. Values beyond the trace, such as the fill of a drive that is larger than all writes,
// are forecasts at the rate of its second half, and marked.
//
// The package keeps no state. A Report belongs to the caller.
package curve
