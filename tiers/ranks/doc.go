// Package ranks combines the storage tiers of a model's tensor-parallel ranks into one tier. An object
// consists of one object per rank, and all of them move concurrently.
//
//	ranks.go  Tier: the ranks' tiers, and the division of an object's bytes
//	groups.go Groups: the same for the groups of layers of a hybrid model, in one engine's files
//	fan.go    fan: a writer or a reader of all ranks' objects
//
// Ranks are separate processes with their own files, calls and threads; here each is a tier of package
// filetier. The slowest rank counts: a prompt is loaded when every rank has its part.
//
// A Tier's methods are safe for concurrent use; it owns the tiers of its ranks.
package ranks
