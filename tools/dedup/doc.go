// Package dedup measures how far an array that deduplicates or compresses could shrink existing
// files: the share of 4 KiB blocks that occur more than once, and the size after zstd level 1. A
// benchmark of storage that quietly stores less than was written measures something else.
//
//	scan.go     Scan: every file once, in parts, on all processors; Report, as JSON and as text
//	counter.go  counting distinct blocks in bounded memory
//
// Files are read once, in parts, with bounded memory. Blocks are compared by 64 bits of their
// SHA-256: among the four million that are kept by default the probability of a collision is below
// one in a million. When more distinct blocks appear than are kept, only those whose hash falls
// into an ever smaller share of all values stay. That samples contents, not places: each kept block
// is counted wherever it occurs. The duplicate share is then an estimate with a 95 % interval,
// computed from the spread of the kept blocks' multiplicities. Blocks of zeros are counted
// separately and exactly. The interval does not cover one case: a single block that makes up much
// of the data, which is in the sample or is not.
package dedup
