// Package spread stores the objects of one storage tier in several directories. The hash of an object's
// key chooses the directory.
//
//	spread.go  Config, Tier: the parts and their accounts; writer and reader of a part
//
// vLLM's filesystem tier with several roots (path_sharding by_block_hash, its PR#53133) and LMCache's
// connector with several base directories (PR#1058) do the same: one directory has a whole block, and
// no directory knows of the others.
//
// The suite adds one rule. Engines let a disk run full, but a cache of a given size must not: if a
// directory has no capacity left, the next one takes the object, and the tier records and counts that.
//
// # Ownership
//
// Each part is a tier with its own directory. The Tier closes all parts and begins no goroutines. One
// mutex guards its accounts; it is not held across a call of a part.
package spread
