// Package dedup measures how far deduplication and compression can shrink existing files: the share of
// blocks that occur more than once, and the size after zstd level 1. If storage shrinks the data of a
// benchmark, the benchmark measures less I/O than it counts.
//
//	scan.go     Scan: reads every file once, in parts, on all processors; Report as JSON and text
//	counter.go  block sizes; counting distinct blocks in bounded memory
//
// Memory is bounded. Blocks are compared by 64 bits of their SHA-256: among the four million blocks
// that are kept by default, a collision has a probability below 1e-6. If there are more distinct
// blocks, only blocks whose hash has enough low zero bits are kept. This samples contents, not
// positions: every occurrence of a kept block is counted. The duplicate share is then an estimate with
// a 95 % confidence interval, from the spread of the kept blocks' numbers of occurrences. Blocks of
// zeros are counted separately and exactly. The interval does not cover a single block that makes up
// much of the data: it is in the sample or not.
package dedup
