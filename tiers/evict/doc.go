// Package evict is the orders in which a level of a cache gives up what it holds.
//
//	evict.go   Order, Item: what an order is; FIFO, and FIFO of buckets
//	lru.go     least recent use, exactly
//	lfu.go     least frequent use
//	s3fifo.go  S3-FIFO: a small queue for what is new, a main one for what was used again
//
// An order does not know capacities beyond what it is made for, and decides nothing: a cache asks
// for victims, passes over those in use, and takes as many as it needs. So what an order yields is
// what would leave one after the other if all of them could, and looking changes nothing.
package evict
