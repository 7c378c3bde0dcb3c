// Package objecttier is a bucket of an object store as a tier: an object per entry, PUT and GET as
// streams, below one prefix that belongs to the run.
//
//	names.go   Names: what objects are called, and which ones are the suite's
//	tier.go    Config, Tier: what lies in it, and who reads it
//	stream.go  Put and Get: whole objects, parts and ranges
//	turns.go   turns, beside: how many requests go at a time, of all entries and of one
//	handle.go  writers and readers at offsets, the second best
//	remove.go  Remove
//	owner.go   the marker that says whose the prefix is, and its heartbeat
//	reclaim.go what a dead run has left
//	folder.go  objects whose names mean something: who reads what another run has left
//	proof.go   what a store is asked to show before it is measured
//	open.go    Open, Clear: the begin and the end of a run in a bucket
//
// Below it: endpoint is which of several addresses is asked, credentials are the keys, and store is
// the requests, with attempts and counts. s3double is a store for tests.
//
// This package is large because a prefix of a bucket has no directory, no lock and no rename below
// it: what makes those of objects, owner, reclaim, proof and folder, stands beside what moves them.
//
// # Rules
//
// Nothing outside of PREFIX/rank_<N>/ is read, written, listed or removed, and of what lies there
// only what has exactly a name of the suite's. A bucket is never made nor removed.
//
// A Tier is safe for concurrent use. Put and Get run on their caller's goroutine, and as many more
// as parts or ranges of an object may be under way; those end before they return. One goroutine
// keeps the marker fresh until Close. What leaves the tier has been tried again as often as it may:
// its errors are never of the kind that a cache would try once more.
package objecttier
