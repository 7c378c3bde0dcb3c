// Package cache decides which level of a stack of tiers holds each entry, and moves the bytes. By
// default the levels are an exclusive waterfall: a new entry goes to the fastest level that may hold
// it, the first victims of a level are demoted to the next level, the last level deletes its first
// victims, and reads promote nothing. Other policies keep copies in the last level.
//
//	cache.go   Cache, Level, Config, Observer
//	policy.go  Policy: placement, admission to the last level, promotion
//	lease.go   Want, Decide, Lease: what a request finds, and what it has to write
//	entry.go   Entry, replica: the states of a key, from pending to evicted
//	room.go    level, move, queue: capacity, victims, and waits for both
//	move.go    moves of bytes, with reports and retries; demotion and removal
//	demote.go  the bytes of a demotion: the upper level as the source of a write
//	copy.go    copies to the last level and promotions: planned, completed, undone
//	io.go      Read, Write, Forget: the steps around the bytes
//
// testdata/decisions shows the choice of victims by example.
//
// # Terms
//
// A writer first claims capacity (level.claimed), reserves it when the bytes are free (reserved), and
// turns it into a replica when they are written. A victim is an entry that must leave a level: it is
// demoted or evicted. With policies that keep copies, an entry of an upper level may also have a
// replica in the last level; dropping one of them keeps the other. A copy or promotion is planned
// (intend) by a lease, which completes it after its own read or write, or behind the requests. A pin
// keeps a replica while it is read. A lease with Prefix is oversubscribed, see Decide, if its blocks
// do not all fit at once.
//
// # Locks and liveness
//
// One mutex guards all metadata; no lock is held across I/O. A writer waits for the write limit
// first, then claims the capacity in all levels in one step, then moves bytes. No lease holds a pin
// while it waits for the write limit, for capacity or for another lease's write: it releases its pins
// before and takes them again after. So every wait is for I/O in progress, or for a wait that began
// earlier, and no schedule can hang.
package cache
