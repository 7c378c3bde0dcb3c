// Package spread makes one storage tier of several: of directories, each of which has whole objects, and
// of ranks, each of which has a part of every object.
//
//	spread.go  Config, Tier: the files in several directories, and their accounts
//	ranks.go   Ranks: the tiers of tensor-parallel ranks, or of groups of layers
//
// # Directories
//
// The hash of an object's key chooses its directory.
// vLLM's filesystem tier with several roots (path_sharding by_block_hash, its PR#53133) and LMCache's
// connector with several base directories (PR#1058) do the same: one directory has a whole block, and
// no directory knows of the others.
//
// The suite adds one rule. Engines let a disk run full, but a cache of a given size must not: if a
// directory has no capacity left, the next one takes the object, and the tier records and counts that.
//
// # Ownership
//
// A Tier and Ranks close their parts. One mutex guards a Tier's accounts; it is not held across a call
// of a part.
package spread
