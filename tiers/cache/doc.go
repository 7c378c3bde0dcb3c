// Package cache decides which entry lives in which level of a stack of tiers, and moves the
// bytes. By default it is an exclusive waterfall: a new entry goes to the fastest level that may
// hold it, the first victims of a level are demoted to the next one, the last one deletes its first
// victims, and reads promote nothing. Other policies keep copies in the last level.
//
//	cache.go   Cache, Level, Config, Observer: what a caller gives and gets
//	policy.go  Policy: where entries live, what may go down and what goes up
//	lease.go   Want, Decide, Lease: what a request finds, and what is its own to write
//	entry.go   Entry, replica: a key's life, from pending to evicted
//	room.go    level, move, queue: who has to leave for an entry, and who waits for what
//	move.go    transfers, told and retried; the moves that make room, and removal
//	copy.go    copies to the last level and promotions: intended, completed, undone
//	io.go      Read, Write, Forget: the steps around the bytes
//
// testdata/decisions shows by example what leaves for what.
//
// # Words
//
// Room is claimed first (level.claimed), reserved when the bytes are free (reserved), and taken
// by a replica when they are written. An entry that has to leave is a victim: demoted, or
// evicted. With policies that keep copies an entry of an upper level may have one in the last: then
// it is dropped in one of them and lives on in the other. What is going to be where else, too, is
// intended, and carried out by the lease that intends it, after its own read or write, or behind
// the requests. A pin keeps a replica while it is read. A lease with Prefix is
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
