// Package cache decides which level of a stack of tiers holds each entry, and moves the bytes. By
// default the levels are an exclusive waterfall: a new entry goes to the fastest level that may hold
// it, each level demotes its victims to the next level, the last level deletes its victims, and reads
// promote nothing. Other policies keep copies in the last level.
//
//	cache.go     Cache, Level, Config, Observer
//	policy.go    Policy: placement, admission to the last level, promotion
//	lease.go     Want, Decide, Lease: which blocks a request hits, and which it has to write
//	entry.go     Entry, replica: the states of a key, from pending to evicted
//	capacity.go  level, move, queue: capacity, victims, and the waits for them
//	move.go      reads and writes of bytes, with reports and retries; demotion and removal
//	demote.go    the bytes of a demotion: the upper level as the source of a write
//	copy.go      copies to the last level and promotions: planned, completed, undone
//	io.go        Read, Write, Forget: the steps around the bytes
//
// testdata/decisions shows the choice of victims by example.
//
// # Terms
//
// A writer first claims capacity (level.claimed). It reserves the capacity when the bytes are free
// (reserved), and turns the reservation into a replica when they are written. A victim is an entry that
// must leave a level: it is demoted or evicted. With policies that keep copies, an entry of an upper
// level may also have a replica in the last level; dropping one replica keeps the other. A lease plans
// a copy or promotion (intend) and completes it after its own read or write, or in the write-behind
// queue. A pin keeps a replica while it is read. A lease with Prefix is oversubscribed if its blocks do
// not all fit at once: see Decide.
//
// # Locks and liveness
//
// One mutex guards all metadata. No lock is held across I/O. A writer waits for the write limit, then
// claims the capacity in all levels in one step, then moves bytes. A lease releases its pins before it
// waits for the write limit, for capacity or for another lease's write, and takes them again after the
// wait. So every wait is for I/O in progress or for an earlier wait, and no schedule can deadlock.
package cache
