// Package curve answers how large a cache must be for recorded traffic, for every capacity at once, and
// writes block traces in the format that other replayers read.
//
//	curve.go    Options and Run: a trace, a model, a drive → Report
//	counter.go  the hits, reads and writes of caches of every capacity, in one pass
//	stack.go    stack distances in bytes
//	text.go     the report for people, as a table; for programs, as values separated by commas
//	charts.go   the report as a page with the curve
//	convert.go  ConvertOptions: traces → Mooncake's JSON lines, and what was lost
//	trace.go    the flags that both have
//
// The counts are exact. They are the same as in a replay of the trace on one level of storage (package
// cache): a request hits its blocks up to the first missing one, missing blocks are written, and all its
// blocks are used, the last one first. The least recently used blocks are evicted when the capacity in bytes
// is exceeded. An LRU cache contains at every moment the content of each smaller one. The bytes of the
// blocks used since a block's last use, and its own, are its stack distance: a cache of at least that
// capacity contains the block. So counting distances gives the curve.
//
// Two cases violate this property, and are reported: a block that changes its size (Resized), and a request
// whose blocks do not all fit (Fits). Orders other than LRU have no stack distances. A tier above the
// storage takes some of the hits that are counted here.
//
// Rates follow from the recorded times. The mean is over the time from the first request to the last, the
// peak over the busiest interval of whole minutes from the first request on: a device that only reaches the
// mean falls behind there. Drive writes per day are the mean rate of a day over the drive's size; without a
// drive, over the capacity of the row, as if the drive had no other use. Values beyond the trace, such as
// the fill of a drive that is larger than all writes, are forecasts at the rate of its second half, and
// marked.
//
// The package keeps no state. A Report belongs to the caller.
package curve
