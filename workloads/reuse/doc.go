// Package reuse reckons in one pass over recorded requests of blocks what caches of every capacity
// would find, read and write.
//
//	curve.go    Curve: requests into counts by capacity: New, Add
//	stack.go    stack: how many bytes were used since a block's last use
//	summary.go  Summary, Point: what was counted, as a curve
//
// It is exact, and means what a replay of the trace on one level of storage means (package cache):
// a request finds its first blocks up to the first that is missing, what is missing is written, and
// all its blocks are used, the last one first. The blocks used least recently leave when the
// capacity in bytes is exceeded. A cache of such order holds at every moment what each smaller one
// holds, and the blocks above a block in the order are what a cache must hold to have it: its stack
// distance. So one count of distances is a curve.
//
// Two things break that order, and are reported: a block that comes with another size than it had
// first (Resized), and a request whose blocks do not fit together (Small). Other orders than least
// recent use have no such distances. A tier above the storage takes hits from it that are counted
// here.
//
// Nothing here has a clock, a file or a goroutine. A Curve belongs to one goroutine.
package reuse
