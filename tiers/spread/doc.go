// Package spread combines several storage tiers into one: directories, each of which has whole objects,
// and ranks, each of which has a part of every object.
//
//	spread.go  Tier: the files in several directories
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
// A Tier and Ranks close their parts. The parts of a Tier know which objects they have. A mutex of the
// Tier guards what its writers are about to take; it is not held while files are created.
package spread
