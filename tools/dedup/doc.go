// Package dedup tells how far an array that deduplicates or compresses could shrink existing files:
// the share of 4 KiB blocks that occur more than once, and what zstd level 1 makes of the data.
// Results of a storage that quietly stores less than was written are results of something else.
//
//	scan.go     Scan: every file once, in parts, on all processors; Report, as JSON and as text
//	counter.go  counting distinct blocks in bounded memory
//
// Files are read once, in parts, with bounded memory. Blocks are told apart by 64 bits of their
// SHA-256, so that among the four million that are kept by default two unequal ones look equal with
// a probability below one in a million. When more distinct blocks appear than are kept, only those
// whose hash falls into an ever smaller share of all values stay: a sample over contents, not over
// places, in which every kept block is still counted wherever it occurs. The duplicate share is
// then an estimate and is given with its 95 % interval, from the spread of the kept blocks'
// multiplicities. Blocks of zeros are counted apart and exactly. A single block that makes up much
// of the data is in the sample or is not, and is the one thing that the interval does not cover.
package dedup
