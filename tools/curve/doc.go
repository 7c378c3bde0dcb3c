// Package curve answers how large a cache must be for recorded traffic, for every capacity at once.
//
//	curve.go  Options and Run: a trace, a model, a drive → Report
//	text.go   the report for people, as a table; for programs, as values separated by commas
//	charts.go  the report as a page with the curve
//
// What is reckoned is said in package workloads/reuse; here are the questions of who buys and runs
// storage: which share of the blocks is found, what the device must read and write for that on
// average and in its busiest minute, how fast the drive wears, when it is full, and where more
// stops to pay. The policy is LRU on one level; runs of a benchmark measure others.
//
// Rates are those of the recorded times. The mean is over the time from the first request to the
// last, the peak over the busiest interval of whole minutes from the first request on: a device
// that does no more than the mean falls behind there. Drive writes per day are the mean rate of a
// day over the drive's size; without a drive, over the capacity of the row, as if the drive had no
// other use. What the trace does not show, such as a drive larger than all that it writes, is given
// as a forecast with the pace of its second half, and marked.
//
// Nothing here keeps state. A Report belongs to who asked for it.
package curve
