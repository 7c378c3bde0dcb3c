// Package spread combines several storage tiers into one: directories, each of which has whole objects,
// and ranks, each of which has a part of every object.
//
//	spread.go  Config, Tier: the files in several directories, with an account per directory
//	ranks.go   Ranks: the tiers of tensor-parallel ranks, or of the groups of layers of a hybrid model
//
// # Directories
//
// The hash of an object's key chooses its directory.
// vLLM's filesystem tier with several roots (path_sharding by_block_hash, its PR#53133) and LMCache's
// connector with several base directories (PR#1058) do the same. One directory has a whole block.
//
// The suite adds one rule. Engines let a disk run full, but a cache must not exceed its size: if a
// directory has no capacity left, the next directory takes the object, and the tier counts that.
//
// # Ownership
//
// A Tier and Ranks close their parts. One mutex guards a Tier's accounts; it is not held across a call
// of a part.
package spread
