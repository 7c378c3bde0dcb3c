// Package curve computes how large a cache must be for a recorded trace, for all capacities in one
// pass, and converts block traces to Mooncake's format.
//
//	curve.go    Options and Run: a trace, a model, a drive → Report; the flags that are parameters of
//	            the benchmarks, for both commands
//	counter.go  hits, reads and writes of caches of all capacities, in one pass
//	stack.go    stack distances in bytes
//	text.go     the report as text and as a table
//	charts.go   the report as a page with the curve
//	convert.go  ConvertOptions: traces → Mooncake's JSON lines, with a summary
//
// The counts equal a replay of the trace on a cache with one level (package cache). A request hits its
// blocks up to the first missing one and writes the missing blocks. Then it uses all its blocks, last
// to first. LRU evicts when the capacity in bytes is exceeded. An LRU cache always contains the content
// of every smaller one. The stack distance of a block is the bytes of the distinct blocks used since
// its last use, itself included: a cache of at least that capacity contains the block. So counting
// distances gives the curve.
//
// Two cases violate this property, and are reported: a block that changes its size (Resized), and a
// request whose blocks do not fit together (Fits). Other policies than LRU have no stack distances. A
// tier above the storage takes some of the hits counted here.
//
// Rates use the recorded times. A mean is over the time from the first to the last request. A peak is
// of the busiest minute, counted from the first request: a device that reaches only the mean falls
// behind then. Drive writes per day are the mean write rate × 1 day ÷ the drive's size, or ÷ the row's
// capacity without -drive.
//
// The package has no state. The caller owns the Report.
package curve
