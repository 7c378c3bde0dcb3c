// Package cache decides which entry lives in which level of a stack of tiers, and moves the
// bytes. It is an exclusive waterfall: a new entry goes to the fastest level that may hold it,
// the first victims of a level are demoted to the next one, the last one deletes its first
// victims, and reads promote nothing.
//
//	cache.go   Cache, Level, Config, Observer: what a caller gives and gets
//	policy.go  Policy, Evictor: the choices, and LRU, the one order that there is
//	lease.go   Want, Decide, Lease: what a request finds, and what is its own to write
//	entry.go   Entry, replica: a key's life, from pending to evicted
//	room.go    level, move, queue: who has to leave for an entry, and who waits for what
//	move.go    transfers, told and retried; the moves that make room, and removal
//	io.go      Read, Write, Forget: the steps around the bytes
//
// testdata/decisions shows by example what leaves for what.
//
// # Words
//
// Room is claimed first (level.claimed), reserved when the bytes are free (reserved), and taken
// by a replica when they are written. An entry that has to leave is a victim: demoted, or
// evicted from the last level. A pin keeps a replica while it is read. A lease with Prefix is
// oversubscribed, see Decide, when its blocks do not fit beside each other.
//
// # Locks and liveness
//
// One mutex guards all metadata; no lock is held across I/O. A writer takes its place of the
// write limit first, then claims the room in all levels concerned in one step, then moves
// bytes. Nobody holds a pin while waiting for a place, for room or for another's write: a Lease
// lets go of its pins before and takes them again after. So every wait is for I/O in progress,
// or for a wait that began earlier, and no schedule can hang.
package cache
