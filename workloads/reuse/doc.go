// Package reuse computes, in one pass over recorded requests of blocks, the hits, reads and writes of caches
// of every capacity.
//
//	curve.go    Curve: counts by capacity: New, Add
//	stack.go    stack: stack distances in bytes
//	summary.go  Summary, Point: the counts as a curve
//
// The result is exact. It is the same as a replay of the trace on one level of storage (package cache): a
// request hits its blocks up to the first missing one, missing blocks are written, and all its blocks are
// used, the last one first. The least recently used blocks are evicted when the capacity in bytes is
// exceeded. An LRU cache contains at every moment the content of each smaller one. The bytes of the blocks
// used since a block's last use, and its own, are its stack distance: a cache of at least that capacity
// contains the block. So counting distances gives the curve.
//
// Two cases violate this property, and are reported: a block that changes its size (Resized), and a request
// whose blocks do not all fit (Small). Orders other than LRU have no stack distances. A tier above the
// storage takes some of the hits that are counted here.
//
// The package uses no clock, file or goroutine. A Curve belongs to one goroutine.
package reuse
