// Package ranks is the storage tiers of a model's tensor-parallel ranks as one: each object is one
// of every rank, and all of them move at the same moment.
//
//	ranks.go  Tier: what all ranks do together; which bytes are whose
//	groups.go Groups: the same for the groups of layers of a hybrid model, in one engine's files
//	fan.go    fan: objects of all ranks as a writer or a reader
//
// Ranks are processes of their own: each has its files, calls and threads, which here is a tier of
// its own (package enginetier). What is waited for is the slowest: a prompt is loaded when every
// rank has its part.
//
// A Tier's methods are safe for concurrent use; it owns the tiers of its ranks.
package ranks
