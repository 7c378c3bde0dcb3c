// Package spread keeps the objects of one storage tier in several directories: the hash of an
// object's key says in which.
//
//	spread.go  Config, Tier: who has what; Writer and Reader of a part, which know whose they are
//
// That is what vLLM's filesystem tier does with several roots (path_sharding by_block_hash, its
// PR#53133) and LMCache's connector with several base directories (PR#1058): a block lies as a
// whole in one of them, and no directory knows of the others.
//
// One thing is added. Engines let a disk run full, a cache of a given size must not: where a
// directory has no room left, the next one takes the object, which the tier remembers and counts.
//
// # Ownership
//
// Each part is a tier of its own with a directory of its own; all of them are closed with the Tier,
// which begins no goroutines. What it knows of them is guarded by one mutex that nobody holds
// across a call of a part.
package spread
