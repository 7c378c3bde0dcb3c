// Package evict has the eviction orders of a cache's levels.
//
//	evict.go   Order, Item: the interface; FIFO, exact LRU, and FIFO of buckets
//	lfu.go     LFU
//	s3fifo.go  S3-FIFO: a small queue for new items, a main queue for items that were used again
//
// An order evicts nothing itself: the cache lists the victims, skips those in use, and takes as many
// as it needs. An order yields its items in the order in which they would leave if all of them could.
// Listing changes nothing.
package evict
