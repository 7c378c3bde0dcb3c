// Package ranks combines the storage tiers of a model's tensor-parallel ranks into one tier. An object
// consists of one object per rank, and all of them move concurrently. It does the same, one after the
// other, for the groups of layers of a hybrid model, which one engine keeps in files of their own.
//
// Ranks are separate processes with their own files, calls and threads; here each is a tier of its own.
// The slowest rank counts: a prompt is loaded when every rank has its part.
package ranks
